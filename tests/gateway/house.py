"""A real gateway process before stages that are real gRPC servers of a few lines."""

import asyncio
import json
import os
import re
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import grpc
import httpx
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

from chassis import channels, deadlines, identity
from chassis.edge import Edge
from chassis.identity import AccessLevel, Caller
from gateway.identity import development_token
from sluice.answer.v1 import answer_pb2_grpc, outcome_pb2
from sluice.assemble.v1 import assemble_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2
from sluice.ingest.v1 import ingest_pb2
from sluice.retrieve.v1 import retrieve_pb2
from tests.gateway.library import Library
from tests.stages import START_SECONDS

SEATS = 3
FLOW = ("retrieve", "assemble", "generate")
ALL = (*FLOW, "ingest")
# Whoever tests something else is never refused by the allowance or by the clock of a busy machine.
GENEROUS = {
    "SUBJECT_REQUESTS_PER_MINUTE": "100000",
    "SUBJECT_REQUEST_BURST": "50000",
    "TENANT_REQUESTS_PER_MINUTE": "100000",
    "TENANT_REQUEST_BURST": "50000",
    "ADMISSION_DECISION_SECONDS": "5",
}
QUESTION = "How do we rotate the database password?"

Behaviour = Callable[[Any], Awaitable[Message]]
Telling = Callable[[Any], AsyncIterator[generate_pb2.GenerateStreamResponse]]


@dataclass
class Seen:
    """One call as its stage saw it."""

    request: Any
    caller: Caller
    remaining: float
    metadata: dict[str, Any]


@dataclass
class Stage:
    """A stage whose RPC does what the test says; it verifies its own internal tokens.

    Asked for a stream, generate tells the words of its reply unless the test says something else.
    Asked to look at evidence again, retrieve finds it as it was.
    """

    name: str
    port: int
    normal: Behaviour
    request: type[Message]
    behaviour: Behaviour = field(init=False)
    telling: Telling = field(init=False)
    checking: Behaviour = field(init=False)
    checked: list[Any] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    server: grpc.aio.Server | None = None
    library: Library = field(default_factory=Library)

    def __post_init__(self) -> None:
        self.reset()

    async def check(self, request: retrieve_pb2.CheckPassagesRequest, _context: object) -> Message:
        self.checked.append(request)
        return await self.checking(request)

    async def answer(
        self, request: Message, context: grpc.aio.ServicerContext[Any, Any]
    ) -> Message:
        with self._watched(request, context):
            return await self.behaviour(request)

    async def tell(
        self,
        request: generate_pb2.GenerateStreamRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[Message]:
        with self._watched(request.task, context):
            async for event in self.telling(request.task):
                yield event

    async def tell_reply(self, task: Message) -> AsyncIterator[generate_pb2.GenerateStreamResponse]:
        reply: Any = await self.behaviour(task)
        for word in re.findall(r"\S+\s*", reply.text):
            yield delta(word)
        yield final(reply)

    @contextmanager
    def _watched(
        self, request: Message, context: grpc.aio.ServicerContext[Any, Any]
    ) -> Iterator[None]:
        left = deadlines.within(1_000).remaining()
        metadata = dict(context.invocation_metadata() or ())
        self.seen.append(Seen(request, identity.current(), left, metadata))
        self.called.set()
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.set()
            raise

    async def reached(self) -> None:
        async with asyncio.timeout(5):
            await self.called.wait()

    def hold(self) -> asyncio.Event:
        """Let calls wait until the event is set, then answer as usual."""
        release = asyncio.Event()

        async def waiting(request: Message) -> Message:
            await release.wait()
            return await self.normal(request)

        self.behaviour = waiting
        return release

    def reset(self) -> None:
        self.behaviour, self.telling = self.normal, self.tell_reply
        self.checking = returning(retrieve_pb2.CheckPassagesResponse(epoch=FOUND.epoch))
        self.library.__init__()  # type: ignore[misc] # its handlers are bound
        self.seen.clear()
        self.checked.clear()
        self.called.clear()
        self.cancelled.clear()

    async def start(self) -> None:
        verifier = identity.Verifier(identity.development_key().public_key(), self.name)

        async def verify(token: str) -> Caller:
            return verifier.verify(token)

        self.server = grpc.aio.server(
            interceptors=[Edge(verify, 100)], options=[("grpc.so_reuseport", 0)]
        )
        self.server.add_generic_rpc_handlers((self._handlers(),))
        servicer = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(servicer, self.server)
        await servicer.set("readiness", health_pb2.HealthCheckResponse.SERVING)
        self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self.server.start()

    def _handlers(self) -> grpc.GenericRpcHandler:
        one: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(
            self.answer, self.request.FromString, lambda reply: reply.SerializeToString()
        )
        many: grpc.RpcMethodHandler[Any, Any] = grpc.unary_stream_rpc_method_handler(
            self.tell,
            generate_pb2.GenerateStreamRequest.FromString,
            lambda reply: reply.SerializeToString(),
        )
        check: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(
            self.check,
            retrieve_pb2.CheckPassagesRequest.FromString,
            lambda reply: reply.SerializeToString(),
        )
        title = self.name.title()
        documents = self.library.handlers() if self.name == "ingest" else {}
        calls = {title: one, f"{title}Stream": many, "CheckPassages": check, **documents}
        return grpc.method_handlers_generic_handler(f"sluice.{self.name}.v1.{title}Service", calls)

    async def stop(self) -> None:
        if self.server:
            await self.server.stop(0)
        self.server = None


def passage(number: int) -> evidence_pb2.Passage:
    return evidence_pb2.Passage(
        point_id=f"00000000-0000-0000-0000-{number:012}",
        document_id=f"runbooks/database-{number}.md",
        title="Database runbook",
        version="3",
        heading_path=["Passwords", "Rotation"],
        blocks=[
            evidence_pb2.Block(text=f"Rotate it on day {number}."),
            evidence_pb2.Block(text="| 1 | 2 |", context="| a | b |"),
        ],
        access_level=evidence_pb2.ACCESS_LEVEL_TEAM,
        score=1 - number / 10,
        uri="https://docs.example.org/database",
        suspected_injection=number == 2,
    )


def source(label: str, number: int) -> evidence_pb2.Source:
    return evidence_pb2.Source(
        label=label,
        document_id=f"runbooks/database-{number}.md",
        title="Database runbook",
        included_text=f"Rotate it on day {number}.",
        passages=[passage(number)],
        access_level=evidence_pb2.ACCESS_LEVEL_TEAM,
        score=0.9,
    )


FOUND = retrieve_pb2.RetrieveResponse(
    passages=[passage(1), passage(2)], score_space=evidence_pb2.SCORE_SPACE_COSINE, epoch=7
)
PROMPT = assemble_pb2.AssembleResponse(
    messages=[
        assemble_pb2.Message(role=assemble_pb2.ROLE_SYSTEM, content="Only from the evidence."),
        assemble_pb2.Message(role=assemble_pb2.ROLE_USER, content="{}"),
    ],
    sources=[source("S1", 1), source("S2", 2)],
    input_tokens=42,
    instructions_version="en-1",
)
WRITTEN = generate_pb2.GenerateResponse(
    outcome=outcome_pb2.Outcome(
        extractive=outcome_pb2.Extractive(reason=outcome_pb2.EXTRACTIVE_REASON_NONE)
    ),
    text="Rotate it on day 1. [S1]",
    citations=[outcome_pb2.Citation(label="S1", start=0, end=24, support=1.0)],
    usage=outcome_pb2.Usage(attempts=1, input_tokens=42, model="tiny"),
)

LISTED = ingest_pb2.ListDocumentsResponse()


def delta(text: str) -> generate_pb2.GenerateStreamResponse:
    return generate_pb2.GenerateStreamResponse(delta=text)


def final(reply: generate_pb2.GenerateResponse) -> generate_pb2.GenerateStreamResponse:
    return generate_pb2.GenerateStreamResponse(final=reply)


def retraction(
    reason: outcome_pb2.RetractionReason.ValueType,
) -> generate_pb2.GenerateStreamResponse:
    return generate_pb2.GenerateStreamResponse(retraction=outcome_pb2.Retraction(reason=reason))


def telling(*script: generate_pb2.GenerateStreamResponse | Exception | asyncio.Event) -> Telling:
    """Tells the events, waits for what has to be waited for, and raises where it says so."""

    async def tell(task: Message) -> AsyncIterator[generate_pb2.GenerateStreamResponse]:
        for step in script:
            match step:
                case Exception():
                    raise step
                case asyncio.Event():
                    await step.wait()
                case _:
                    yield step

    return tell


def returning(reply: Message) -> Behaviour:
    async def behaviour(request: Message) -> Message:
        return reply

    return behaviour


def raising(error: Exception) -> Behaviour:
    async def behaviour(request: Message) -> Message:
        raise error

    return behaviour


async def hanging(request: Message) -> Message:
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never


class Told(NamedTuple):
    """One Server-Sent Event; a comment has no name."""

    name: str
    content: Any


async def events_in(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Told, None]:
    """The events of a response, by the rules of the standard."""
    held = b""
    async for piece in pieces:
        held += piece
        while (end := held.find(b"\n\n")) >= 0:
            yield _told(held[:end].decode())
            held = held[end + 2 :]
    assert not held


def _told(text: str) -> Told:
    fields: dict[str, list[str]] = {}
    for line in re.split(r"\r\n|\r|\n", text):
        name, _, value = line.partition(":")
        fields.setdefault(name, []).append(value.removeprefix(" "))
    if "" in fields:
        return Told("", fields[""])
    assert set(fields) == {"event", "data"}
    (event,) = fields["event"]
    return Told(event, json.loads("\n".join(fields["data"])))


@dataclass
class House:
    """The gateway process, its stages, and two ways to its door."""

    http: httpx.AsyncClient
    channel: grpc.aio.Channel
    stages: dict[str, Stage]
    process: Process
    log: Path
    http_port: int

    @property
    def retrieve(self) -> Stage:
        return self.stages["retrieve"]

    @property
    def assemble(self) -> Stage:
        return self.stages["assemble"]

    @property
    def generate(self) -> Stage:
        return self.stages["generate"]

    @property
    def ingest(self) -> Stage:
        return self.stages["ingest"]

    @property
    def answers(self) -> "answer_pb2_grpc.AnswerServiceAsyncStub":
        return answer_pb2_grpc.AnswerServiceStub(self.channel)

    async def ask(self, body: object = None, **headers: str) -> httpx.Response:
        sent = {"question": QUESTION} if body is None else body
        return await self.http.post(
            "/v1/answers", json=sent, headers={**bearer(), **named(headers)}
        )

    @asynccontextmanager
    async def told(
        self, body: object = None, **headers: str
    ) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[Told]]]:
        """The response, and its events while they come."""
        sent = {"question": QUESTION} if body is None else body
        wanted = {"Accept": "text/event-stream", **bearer(), **named(headers)}
        async with (
            self.http.stream("POST", "/v1/answers", json=sent, headers=wanted) as response,
            aclosing(events_in(response.aiter_bytes())) as events,
        ):
            yield response, events

    async def hear(self, body: object = None, **headers: str) -> list[Told]:
        async with self.told(body, **headers) as (response, events):
            assert response.status_code == 200
            return [event async for event in events]

    async def idle(self) -> bool:
        """Whether every seat is free."""
        operator = development_token("op", "ops", AccessLevel.PUBLIC, roles=["operator"])
        headers = {"Authorization": f"Bearer {operator}"}
        found = (await self.http.get("/v1/capacity", headers=headers)).json()
        return bool(found["gateway"]["in_flight"] == 0)

    async def listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.http_port)
        except ConnectionRefusedError:
            return False
        writer.close()
        return True

    def logged(self) -> str:
        return self.log.read_text()


def named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def token(
    subject: str = "ana",
    tenant: str = "acme",
    level: AccessLevel = AccessLevel.TEAM,
    lifetime: int = 3_600,
    audience: str = "sluice",
) -> str:
    return development_token(subject, tenant, level, lifetime=lifetime, audience=audience)


def bearer(tenant: str = "acme", level: AccessLevel = AccessLevel.TEAM) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(tenant=tenant, level=level)}"}


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 10) -> bool:
    """True, as soon as it holds."""
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - another process has no event to wait for
            await asyncio.sleep(0.01)
    return True


def stages() -> dict[str, Stage]:
    return {
        stage.name: stage
        for stage in (
            Stage("retrieve", find_port(), returning(FOUND), retrieve_pb2.RetrieveRequest),
            Stage("assemble", find_port(), returning(PROMPT), assemble_pb2.AssembleRequest),
            Stage("generate", find_port(), returning(WRITTEN), generate_pb2.GenerateRequest),
            Stage("ingest", find_port(), returning(LISTED), ingest_pb2.ListDocumentsRequest),
        )
    }


@asynccontextmanager
async def served(*names: str) -> AsyncIterator[dict[str, Stage]]:
    """All stages, of which those named run."""
    behind = stages()
    try:
        for name in names:
            await behind[name].start()
        yield behind
    finally:
        for stage in behind.values():
            await stage.stop()


@asynccontextmanager
async def gateway(
    behind: dict[str, Stage],
    log: Path,
    told: Mapping[str, str] = MappingProxyType({}),
    *,
    wait: bool = True,
) -> AsyncIterator[House]:
    """A gateway before the stages, ready, with everything that it logs in a file."""
    port, http_port = find_port(), find_port()
    targets = {
        f"SLUICE_{n.upper()}_TARGET": f"dns:///127.0.0.1:{s.port}" for n, s in behind.items()
    }
    settings = {
        "ENV": "development",
        "PORT": str(port),
        "HTTP_PORT": str(http_port),
        "REDIS_URL": "unix:///nowhere",
        **GENEROUS,
        **told,
    }
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gateway",
            env={**os.environ, **targets, **{f"SLUICE_{n}": v for n, v in settings.items()}},
            stderr=sink,
        )
    client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{http_port}", timeout=20)
    channel = channels.connect(
        f"dns:///127.0.0.1:{port}", service="sluice.answer.v1.AnswerService", idempotent=False
    )
    try:
        if wait:
            await ready(channel)
        yield House(client, channel, behind, process, log, http_port)
    finally:
        await client.aclose()
        await channel.close()
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), 10)


async def ready(channel: grpc.aio.Channel) -> None:
    request = health_pb2.HealthCheckRequest(service="readiness")
    async with asyncio.timeout(START_SECONDS):
        async for found in health_pb2_grpc.HealthStub(channel).Watch(request, wait_for_ready=True):
            if found.status == health_pb2.HealthCheckResponse.SERVING:
                return


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
