"""One question by each face of the gateway, and what came of it in one shape."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx
from google.protobuf.json_format import MessageToJson
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

from gateway.identity import development_token
from gateway.wire import outcome_of
from sluice.answer.v1 import answer_pb2, answer_pb2_grpc
from tests.suite.chaos.documents import Reader

# Nobody here gives up before the suite does: what takes too long is to be seen.
PATIENCE = 60.0
LIFETIME = 3_600  # seconds, so that no token ends during a run
REFUSED = {429, 503, 504}
REFUSED_CODES = {
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """`sources` are texts by label, `cited` the labels in the text."""

    mode: str
    reason: str
    text: str
    sources: Mapping[str, str]
    cited: frozenset[str]


@dataclass(slots=True)
class Told:
    """What came of a question. `shown` is all that the reader was sent.

    `outcome` is one word or two for counting; `unheard` where no reply came, or not all of it;
    `unworded` says what is wrong with a failure's words.
    """

    face: str
    began: float
    ended: float = 0.0
    outcome: str = ""
    shown: str = ""
    answer: Answer | None = None
    unheard: bool = False
    unworded: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)


Ask = Callable[[Reader, str], Awaitable[Told]]


def bearer(reader: Reader, *roles: str) -> dict[str, str]:
    token = development_token("tester", reader.tenant, reader.level, roles=roles, lifetime=LIFETIME)
    return {"Authorization": f"Bearer {token}"}


def answer_of(body: Mapping[str, Any]) -> Answer:
    return Answer(
        body["mode"],
        body["reason"],
        body["text"],
        {source["label"]: source["included_text"] for source in body["sources"]},
        frozenset(mark["label"] for mark in body["citations"]),
    )


async def exchange(
    http: httpx.AsyncClient,
    face: str,
    method: str,
    path: str,
    **sent: Any,  # noqa: ANN401 - httpx's own
) -> tuple[Told, httpx.Response | None]:
    """A request and its whole response, if there was one."""
    told = Told(face, time.monotonic())
    response = None
    try:
        response = await http.request(method, path, **sent)
    except httpx.TransportError as error:
        told.unheard, told.outcome = True, type(error).__name__
    told.ended = time.monotonic()
    if response is not None:
        told.shown = response.text
        if response.is_error:
            refused(told, response)
        else:
            told.outcome = str(response.status_code)
    return told, response


def refused(told: Told, response: httpx.Response) -> None:
    kind = response.headers.get("content-type", "")
    reason = response.json().get("reason", "") if kind == "application/problem+json" else ""
    told.outcome = f"{response.status_code} {reason}"
    if response.status_code not in REFUSED or not reason or "Traceback" in response.text:
        told.unworded = f"{response.status_code}: {response.text[:300]}"


class Faces:
    """HTTP, Server-Sent Events, and gRPC with and without a stream."""

    def __init__(self, http: httpx.AsyncClient, channel: grpc.aio.Channel) -> None:
        self._http = http
        self._stub: answer_pb2_grpc.AnswerServiceAsyncStub = answer_pb2_grpc.AnswerServiceStub(
            channel
        )

    @property
    def all(self) -> list[Ask]:
        return [self.json, self.events, self.unary, self.stream]

    async def json(self, reader: Reader, question: str) -> Told:
        sent = {"json": {"question": question}, "headers": bearer(reader)}
        told, response = await exchange(self._http, "json", "POST", "/v1/answers", **sent)
        if response is not None and not response.is_error:
            _answered(told, answer_of(response.json()))
        return told

    async def events(self, reader: Reader, question: str) -> Told:
        headers = {**bearer(reader), "Accept": "text/event-stream"}
        sent = {"json": {"question": question}, "headers": headers}
        told, response = await exchange(self._http, "events", "POST", "/v1/answers", **sent)
        if response is not None and not response.is_error:
            self._last_event(told)
        return told

    def _last_event(self, told: Told) -> None:
        for part in told.shown.split("\n\n"):
            lines = [line.partition(": ") for line in part.splitlines()]
            fields = {name: value for name, _, value in lines}
            if fields.get("event") == "answer":
                _answered(told, answer_of(json.loads(fields["data"])))
            elif fields.get("event") == "error":
                problem = json.loads(fields["data"])
                told.outcome = f"{problem['status']} {problem['reason']}"
                if problem["status"] not in REFUSED:
                    told.unworded = fields["data"]
        if told.outcome == str(httpx.codes.OK.value):
            told.unheard, told.outcome = True, "cut"

    async def unary(self, reader: Reader, question: str) -> Told:
        told = Told("unary", time.monotonic())
        request, metadata = answer_pb2.AskRequest(question=question), _metadata(reader)
        try:
            reply = await self._stub.Ask(request, timeout=PATIENCE, metadata=metadata)
            told.shown = MessageToJson(reply)
            _answered(told, _answer_in(reply))
        except grpc.aio.AioRpcError as failure:
            _failed(told, failure)
        told.ended = time.monotonic()
        return told

    async def stream(self, reader: Reader, question: str) -> Told:
        told = Told("stream", time.monotonic())
        request = answer_pb2.AskStreamRequest(ask=answer_pb2.AskRequest(question=question))
        calling = self._stub.AskStream(request, timeout=PATIENCE, metadata=_metadata(reader))
        try:
            async for event in calling:
                told.shown += MessageToJson(event)
                if event.WhichOneof("event") == "answer":
                    _answered(told, _answer_in(event.answer))
            if told.answer is None:
                told.unworded = "a stream that ended well without an answer"
        except grpc.aio.AioRpcError as failure:
            _failed(told, failure)
        finally:
            calling.cancel()
        told.ended = time.monotonic()
        return told


def _answered(told: Told, answer: Answer) -> None:
    told.answer, told.outcome = answer, f"{answer.mode} {answer.reason}"


def _answer_in(reply: answer_pb2.AskResponse) -> Answer:
    outcome = outcome_of(reply.outcome)
    return Answer(
        outcome.mode.value,
        outcome.reason.value,
        reply.text,
        {source.label: source.included_text for source in reply.sources},
        frozenset(mark.label for mark in reply.citations),
    )


def _metadata(reader: Reader) -> tuple[tuple[str, str], ...]:
    return (("authorization", bearer(reader)["Authorization"]),)


def _failed(told: Told, failure: grpc.aio.AioRpcError) -> None:
    """A failure without our words comes from the transport: there was nobody to say any."""
    reason = _reason(failure)
    told.outcome = f"{failure.code().name} {reason}".strip()
    if not reason:
        told.unheard = True
    elif failure.code() not in REFUSED_CODES or "Traceback" in (failure.details() or ""):
        told.unworded = f"{failure.code().name}: {failure.details()}"


def _reason(failure: grpc.aio.AioRpcError) -> str:
    status = rpc_status.from_call(failure)
    info = ErrorInfo()
    found = [info.reason for detail in (status.details if status else ()) if detail.Unpack(info)]
    return found[0] if found else ""
