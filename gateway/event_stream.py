"""An answer as Server-Sent Events, told while it comes about."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import structlog
from fastapi import Response
from fastapi.sse import format_sse_event
from pydantic import BaseModel, Field, WithJsonSchema
from starlette.types import Receive, Scope, Send

from chassis.errors import SluiceError, Unavailable
from gateway.answer import Answer
from gateway.departure import alongside, unless_gone
from gateway.problem import Problem, problem_of
from gateway.schema import AnswerResponse
from gateway.telling import Delta, Event, Retraction, RetractionReason, Stage, Tell
from sluice.evidence.v1.evidence_pb2 import Source

MEDIA_TYPE = "text/event-stream"
# Proxies end a connection that is silent for a minute, some of them earlier.
HEARTBEAT_SECONDS = 5.0
HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-cache, no-store",
    "X-Accel-Buffering": "no",  # else nginx holds events back
}

_QUALITY = re.compile(r"(?:^|;)\s*q=([01](?:\.[0-9]{0,3})?)\s*(?:;|$)", re.IGNORECASE)

Ask = Callable[[Tell[Source]], Awaitable[object]]

log = structlog.get_logger()


class StageEvent(BaseModel):
    """A stage begins, or ended."""

    stage: str = Field(description="retrieve, assemble or generate")
    milliseconds: float | None = Field(description="how long it took; null while it runs")


class DeltaEvent(BaseModel):
    """Text to append to what was shown. Provisional until the answer."""

    text: str


class RetractEvent(BaseModel):
    """Everything shown is withdrawn; no delta follows."""

    reason: Annotated[
        RetractionReason, WithJsonSchema({"type": "string", "enum": [*RetractionReason]})
    ]


def wants_events(accept: Sequence[str]) -> bool:
    """Whether a request's Accept headers name event streams, and not JSON above them."""
    shares = dict(_share(part) for header in accept for part in header.split(","))
    events = shares.get(MEDIA_TYPE, 0)
    return events > 0 and events >= shares.get("application/json", 0)


def _share(part: str) -> tuple[str, float]:
    kind, _, parameters = part.partition(";")
    share = _QUALITY.search(parameters)
    return kind.strip().lower(), float(share[1]) if share else 1


def _published(name: str, content: Mapping[str, object]) -> dict[str, object]:
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": content}
    properties = {"event": {"const": name}, "data": data}
    return {"type": "object", "properties": properties, "required": [*properties]}


# What OpenAPI is told; the answer's own schema is there already.
PUBLISHED: Mapping[str, object] = {
    "itemSchema": {
        "oneOf": [
            _published("stage", StageEvent.model_json_schema()),
            _published("delta", DeltaEvent.model_json_schema()),
            _published("retract", RetractEvent.model_json_schema()),
            _published("answer", {"$ref": "#/components/schemas/AnswerResponse"}),
            _published("error", Problem.model_json_schema()),
        ]
    }
}


class EventStream(Response):
    """What `ask` tells, in events of which the last is `answer` or `error`.

    What goes wrong before the first event is raised, to become an ordinary refusal. A slow reader
    holds back who tells; one that leaves ends the work.
    """

    media_type = MEDIA_TYPE

    def __init__(self, ask: Ask, request_id: str) -> None:
        # As Starlette's own stream: the body is not known, hence no length of it.
        self.status_code = 200
        self.background = None
        self.init_headers(HEADERS)
        self._ask = ask
        self._request_id = request_id

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        lines = Lines(self, send)
        async with lines.ending(self._failed):
            await unless_gone(receive, self._tell(lines))

    async def _tell(self, lines: "Lines") -> None:
        async def tell(event: Event[Source]) -> None:
            if isinstance(event, Stage) and event.elapsed is not None:
                # Where one stage ends the next one begins, or the answer follows.
                lines.hold(encoded(event))
            else:
                await lines.put(encoded(event))

        async with alongside(lines.beat()):
            await self._ask(tell)
        await lines.end(b"")

    def _failed(self, error: Exception) -> bytes:
        return _event("error", problem_of(self._request_id, error))


class Lines:
    """The response's body. Nothing is sent before the first line."""

    def __init__(self, response: Response, send: Send) -> None:
        self.begun = False
        self._held = b""
        self._response = response
        self._send = send
        self._sending = asyncio.Lock()

    def hold(self, line: bytes) -> None:
        """Send it together with the next one."""
        self._held += line

    async def put(self, line: bytes, *, more: bool = True) -> None:
        async with self._sending:
            line, self._held = self._held + line, b""
            if not self.begun:
                self.begun = True
                status, headers = self._response.status_code, self._response.raw_headers
                start = {"type": "http.response.start", "status": status, "headers": headers}
                await self._send(start)
            await self._send({"type": "http.response.body", "body": line, "more_body": more})

    @asynccontextmanager
    async def ending(self, told: Callable[[Exception], bytes]) -> AsyncIterator[None]:
        """What goes wrong in the block once something was sent is the last line, as it is `told`.

        What goes wrong before is raised, to become an ordinary refusal.
        """
        try:
            yield
        except asyncio.CancelledError:
            await self.end(told(Unavailable("the gateway is stopping", reason="STOPPING")))
            raise
        except Exception as error:  # the edge of the process: no status can tell of it any more
            if not self.begun:
                raise
            if not isinstance(error, SluiceError):
                log.exception("request_failed")
            await self.end(told(error))

    async def end(self, last: bytes) -> None:
        """End what was begun."""
        if self.begun:
            await self.put(last, more=False)

    async def beat(self, *, opening: bool = False) -> None:
        """Say now and then that the stream is alive, which proxies want to see.

        With `opening` that may be the first line.
        """
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if self.begun or opening:
                await self.put(format_sse_event(comment="still here"))


def encoded(event: Event[Source]) -> bytes:
    match event:
        case Stage():
            took = None if event.elapsed is None else round(1e3 * event.elapsed, 3)
            return _event("stage", StageEvent(stage=event.name, milliseconds=took))
        case Delta():
            return _event("delta", DeltaEvent(text=event.text))
        case Retraction():
            return _event("retract", RetractEvent(reason=event.reason))
        case Answer():
            return _event("answer", AnswerResponse.of(event))


def _event(name: str, content: BaseModel) -> bytes:
    # Readers that cut lines wherever Unicode does, such as at U+2028, see none of it in ASCII.
    return format_sse_event(event=name, data_str=content.model_dump_json(ensure_ascii=True))
