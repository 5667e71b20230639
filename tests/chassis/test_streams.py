"""Response streams between a real client and a real server: how they end, whoever ends them."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import grpc
import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from chassis import channels, edge, errors, identity
from chassis.deadlines import Deadline, enter
from chassis.edge import Edge
from chassis.identity import AccessLevel, Caller, Minter, development_key
from sluice.generate.v1 import generate_pb2, generate_pb2_grpc

CALLER = Caller("ana", "acme", AccessLevel.TEAM, frozenset({"sre"}), frozenset())
VERIFIER = identity.Verifier(development_key().public_key(), "generate")
PAGE = "x" * 8_192
MANY = 4_096  # pages: far more than all buffers between two processes hold


class Teller(generate_pb2_grpc.GenerateServiceServicer):
    """Tells as the question says, and remembers how the telling ended."""

    def __init__(self) -> None:
        self.told = 0
        self.running = 0
        self.ended: list[str] = []
        self.tasks: set[object] = set()
        self._changed = asyncio.Event()

    async def until(self, ended: int) -> None:
        async with asyncio.timeout(5):
            while len(self.ended) < ended or self.running:
                self._changed.clear()
                await self._changed.wait()

    async def Generate(  # noqa: N802 - the contract's name
        self, request: generate_pb2.GenerateRequest, context: object
    ) -> generate_pb2.GenerateResponse:
        return generate_pb2.GenerateResponse()

    async def GenerateStream(  # noqa: N802 - the contract's name
        self, request: generate_pb2.GenerateStreamRequest, context: object
    ) -> AsyncIterator[generate_pb2.GenerateStreamResponse]:
        self.running += 1
        try:
            async with aclosing(self._tell(request.task.question)) as words:
                async for word in words:
                    yield generate_pb2.GenerateStreamResponse(delta=word)
        finally:
            self._end("outer")
            self.running -= 1
            self._changed.set()

    async def _tell(self, question: str) -> AsyncGenerator[str, None]:
        try:
            self.tasks.add(asyncio.current_task())
            yield f"{identity.current().tenant} "
            match question:
                case "full":
                    raise errors.Exhausted("no room", reason="ROOM", retry_after=1.25)
                case "bug":
                    raise RuntimeError("driver text with a secret")
                case "cancelled":
                    raise asyncio.CancelledError
                case "hang":
                    await asyncio.Event().wait()
                case "much":
                    for _ in range(MANY):
                        self.told += 1
                        yield PAGE
                case "words":
                    for number in range(20):
                        await asyncio.sleep(0)
                        yield str(number)
        finally:
            self._end("inner")

    def _end(self, which: str) -> None:
        self.ended.append(which)
        self.tasks.add(asyncio.current_task())


async def verify(token: str) -> Caller:
    return VERIFIER.verify(token)


class House:
    def __init__(self, teller: Teller, guard: Edge, channel: grpc.aio.Channel) -> None:
        self.teller = teller
        self.guard = guard
        self.stub = generate_pb2_grpc.GenerateServiceStub(channel)

    @asynccontextmanager
    async def asked(
        self, question: str, limit: float = 5, token: str | None = None
    ) -> AsyncIterator[channels.Responses[generate_pb2.GenerateStreamResponse]]:
        request = generate_pb2.GenerateStreamRequest(
            task=generate_pb2.GenerateRequest(question=question)
        )
        token = Minter(development_key()).mint(CALLER, "generate") if token is None else token
        async with channels.stream(
            self.stub.GenerateStream, request, stage="generate", token=token, limit=limit
        ) as responses:
            yield responses

    async def words(self, question: str) -> list[str]:
        async with self.asked(question) as responses:
            return [response.delta async for response in responses]

    async def standstill(self) -> None:
        """Return once no more is told, since nobody reads it."""
        before = -1
        while before < self.teller.told:
            before = self.teller.told
            await self.round_trip()

    async def round_trip(self) -> None:
        """Whatever was sent before has arrived on the other side."""
        token = Minter(development_key()).mint(CALLER, "generate")
        await channels.call(
            self.stub.Generate,
            generate_pb2.GenerateRequest(),
            stage="generate",
            token=token,
            limit=5,
        )


@asynccontextmanager
async def house(limit: float = 30) -> AsyncIterator[House]:
    teller, guard = Teller(), Edge(verify, limit)
    server = grpc.aio.server(interceptors=[guard])
    generate_pb2_grpc.add_GenerateServiceServicer_to_server(teller, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    service = "sluice.generate.v1.GenerateService"
    channel = channels.connect(f"dns:///127.0.0.1:{port}", service=service, idempotent=False)
    try:
        yield House(teller, guard, channel)
    finally:
        await channel.close()
        await server.stop(0)


async def test_a_stream_is_told_to_its_caller_in_order() -> None:
    async with house() as at:
        assert await at.words("words") == ["acme ", *map(str, range(20))]
        await at.teller.until(ended=2)
        assert at.teller.ended == ["inner", "outer"]


@pytest.mark.parametrize(
    ("question", "kind", "reason"),
    [
        ("full", errors.Exhausted, "ROOM"),
        ("bug", errors.Internal, "INTERNAL"),
        ("cancelled", errors.Internal, "INTERNAL"),
    ],
)
async def test_an_error_after_the_first_message_arrives_typed(
    question: str, kind: type[errors.SluiceError], reason: str
) -> None:
    async with house() as at, at.asked(question) as responses:
        assert (await anext(responses)).delta == "acme "
        with pytest.raises(kind) as failed:
            await anext(responses)
        assert failed.value.reason == reason
        assert "secret" not in failed.value.message
        await at.teller.until(ended=2)


async def test_a_stream_needs_a_token_of_its_own_stage() -> None:
    tokens = {"": "UNAUTHENTICATED", Minter(development_key()).mint(CALLER, "x"): "WRONG_AUDIENCE"}
    async with house() as at:
        for token, reason in tokens.items():
            async with at.asked("words", token=token) as responses:
                with pytest.raises(errors.Unauthenticated) as refused:
                    await anext(responses)
            assert refused.value.reason == reason
        assert not at.teller.tasks


async def test_the_callers_deadline_ends_a_stream_in_the_middle() -> None:
    async with house() as at:
        enter(Deadline.after(0.5))
        async with at.asked("hang") as responses:
            assert (await anext(responses)).delta == "acme "
            with pytest.raises(errors.DeadlineExceeded):
                await anext(responses)
        await at.teller.until(ended=2)
        assert at.teller.ended == ["inner", "outer"]


async def test_the_servers_own_limit_ends_a_stream_in_the_middle() -> None:
    async with house(limit=0.3) as at, at.asked("hang") as responses:
        assert (await anext(responses)).delta == "acme "
        with pytest.raises(errors.DeadlineExceeded) as over:
            await anext(responses)
        assert over.value.message == "generate: the time for this request is over"
        await at.teller.until(ended=2)


@pytest.mark.parametrize("question", ["hang", "much"])
async def test_a_caller_that_leaves_ends_the_generators_in_order_and_in_their_own_task(
    question: str, caplog: pytest.LogCaptureFixture
) -> None:
    with structlog.testing.capture_logs() as logs:
        async with house() as at:
            async with at.asked(question) as responses:
                assert (await anext(responses)).delta == "acme "
                await at.standstill()
            await at.teller.until(ended=2)
            assert at.teller.ended == ["inner", "outer"]
            assert len(at.teller.tasks) == 1
            await at.guard.wait_idle()
            await at.round_trip()
    assert all(entry["event"] != "rpc_failed" for entry in logs)
    assert not [entry for entry in caplog.records if entry.levelname == "ERROR"]


async def test_whenever_a_caller_is_cancelled_the_other_side_ends_and_so_does_its_span(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(edge, "_tracer", provider.get_tracer("test"))
    chance = random.Random(4)
    async with house() as at:
        for attempt in range(120):
            reading = asyncio.create_task(at.words(chance.choice(["words", "much", "hang"])))
            for _ in range(chance.randrange(60)):
                await asyncio.sleep(0)
            if attempt % 2:
                await at.round_trip()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        await at.round_trip()
        await at.teller.until(ended=60)
        assert Counter(at.teller.ended)["inner"] == Counter(at.teller.ended)["outer"]
        await at.guard.wait_idle()
    streams = [span for span in exporter.get_finished_spans() if span.name.endswith("Stream")]
    assert len(streams) >= len(at.teller.ended) // 2
    assert len({span.context.span_id for span in streams}) == len(streams)
    assert not [entry for entry in caplog.records if entry.levelname == "ERROR"]


async def test_a_reader_that_does_not_read_holds_back_who_tells() -> None:
    async with house() as at, at.asked("much") as responses:
        assert (await anext(responses)).delta == "acme "
        await at.standstill()
        assert 0 < at.teller.told < MANY // 4
        assert sum([len(response.delta) async for response in responses]) == MANY * len(PAGE)


async def test_an_open_stream_counts_as_running() -> None:
    async with house() as at:
        async with at.asked("hang") as responses:
            assert (await anext(responses)).delta == "acme "
            idle = asyncio.create_task(at.guard.wait_idle())
            await at.round_trip()
            assert not idle.done()
        await asyncio.wait_for(idle, 5)
        assert at.teller.ended == ["inner", "outer"]
