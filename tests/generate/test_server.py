import asyncio
import json
import time
from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from chassis import channels
from chassis.errors import InvalidInput, Unauthenticated
from chassis.identity import AccessLevel, Caller, Minter, development_key
from sluice.answer.v1 import outcome_pb2
from sluice.assemble.v1 import assemble_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2 as pb
from sluice.generate.v1.generate_pb2_grpc import GenerateServiceStub
from tests.capacity.server import running_server
from tests.scripted_provider import replies
from tests.scripted_provider.server import ScriptedProvider
from tests.stages import running

pytestmark = pytest.mark.asyncio(loop_scope="module")

SENTENCE = "The deploy window is Monday to Thursday, 09:30 to 15:30 harbour time."
QUESTION = "When is the deploy window?"
CALLER = Caller("tester", "demo", AccessLevel.TEAM, frozenset(), frozenset())
TEXT = "The deploy window is Monday to Thursday. [S1]"
REPLY = json.dumps({"status": "answered", "answer": TEXT, "source_ids": ["S1"]})
BEGUN = f'{{"status": "answered", "answer": "{TEXT} And then ships'
OPENS_WITHIN = 15.0  # seconds until a new pool admits a call


def request(question: str = QUESTION, **more: object) -> pb.GenerateRequest:
    block = evidence_pb2.Block(kind=evidence_pb2.BLOCK_KIND_PARAGRAPH, text=SENTENCE)
    source = evidence_pb2.Source(
        label="S1",
        document_id="deploy.md",
        title="Deploy policy",
        included_text=SENTENCE,
        blocks=[block],
        score=0.9,
    )
    messages = [
        assemble_pb2.Message(role=assemble_pb2.ROLE_SYSTEM, content="Only the evidence."),
        assemble_pb2.Message(role=assemble_pb2.ROLE_USER, content=question),
    ]
    whole = pb.GenerateRequest(
        question=question,
        messages=messages,
        sources=[source],
        input_tokens=100,
        score_space=evidence_pb2.SCORE_SPACE_COSINE,
    )
    whole.MergeFrom(pb.GenerateRequest(**more))  # type: ignore[arg-type] # only ever fields
    return whole


async def generate(
    channel: grpc.aio.Channel,
    asked: pb.GenerateRequest,
    *,
    stage: str = "generate",
    limit: float = 10,
) -> pb.GenerateResponse:
    token = Minter(development_key()).mint(CALLER, stage)
    stub = GenerateServiceStub(channel)
    return await channels.call(stub.Generate, asked, stage="generate", token=token, limit=limit)


async def stream(
    channel: grpc.aio.Channel, asked: pb.GenerateRequest
) -> list[pb.GenerateStreamResponse]:
    call = GenerateServiceStub(channel).GenerateStream(
        pb.GenerateStreamRequest(task=asked), timeout=10, metadata=_metadata()
    )
    return [event async for event in call]


def _metadata() -> tuple[tuple[str, str], ...]:
    token = Minter(development_key()).mint(CALLER, "generate")
    return (("authorization", f"Bearer {token}"),)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def extractive() -> AsyncIterator[grpc.aio.Channel]:
    async with running("generate", SLUICE_ANSWER_MODE="extractive") as channel:
        yield channel


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[ScriptedProvider]:
    async with ScriptedProvider() as provider:
        yield provider


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def generated(
    provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[grpc.aio.Channel]:
    """With a Redis of its own, and a pool that has opened."""
    with running_server(tmp_path_factory.mktemp("generate")) as redis:
        async with running(
            "generate",
            SLUICE_ANSWER_MODE="generated",
            SLUICE_ANSWER_BASE_URL=provider.base_url,
            SLUICE_ANSWER_MODEL="model-a",
            SLUICE_ANSWER_MAX_ATTEMPTS="1",
            # A busy machine may answer late, which is not what is tried here.
            SLUICE_CAPACITY_DECISION_SECONDS="2",
            SLUICE_REDIS_URL=redis.url,
        ) as channel:
            await _opened(channel, provider)
            yield channel


async def test_the_extractive_process_quotes_abstains_and_refuses_bad_requests(
    extractive: grpc.aio.Channel,
) -> None:
    answered = await generate(extractive, request())
    assert answered.outcome.extractive.reason == outcome_pb2.EXTRACTIVE_REASON_NONE
    assert answered.text == f"{SENTENCE} [S1]"
    (citation,) = answered.citations
    assert (citation.label, citation.start, citation.end, citation.support) == (
        "S1",
        0,
        len(answered.text),
        1.0,
    )
    assert answered.usage.attempts == 0
    assert not answered.usage.HasField("input_tokens")

    abstained = await generate(extractive, request("Who pays for lunch?"))
    insufficient = outcome_pb2.ABSTAINED_REASON_EVIDENCE_INSUFFICIENT
    assert abstained.outcome.abstained.reason == insufficient
    assert abstained.text == ""

    nothing = pb.GenerateRequest(question=QUESTION)
    found = (await generate(extractive, nothing)).outcome.abstained.reason
    assert found == outcome_pb2.ABSTAINED_REASON_NOTHING_FOUND

    for wrong, field in WRONG:
        with pytest.raises(InvalidInput) as refused:
            await generate(extractive, wrong)
        assert refused.value.field == field
    with pytest.raises(Unauthenticated):
        await generate(extractive, request(), stage="retrieve")


WRONG = [
    (pb.GenerateRequest(), "question"),
    (request("x" * 4_001), "question"),
    (request("a\x00b"), "question"),
    (request(messages=[assemble_pb2.Message(content="no role")]), "messages[2].role"),
    (request(sources=[evidence_pb2.Source(included_text="x")]), "sources[1].label"),
    (request(sources=[evidence_pb2.Source(label="S1")]), "sources"),
    (request(sources=[evidence_pb2.Source(label="S2", score=float("nan"))]), "sources[1].score"),
    (
        request(messages=[assemble_pb2.Message(role=assemble_pb2.ROLE_USER)] * 20),
        "messages",
    ),
]


async def test_a_spent_deadline_is_an_outcome_and_a_caller_who_leaves_ends_the_call(
    generated: grpc.aio.Channel, provider: ScriptedProvider
) -> None:
    provider.script(replies.stalled(replies.chunk("half")), replies.stalled(replies.chunk("half")))
    response = await generate(generated, unlike("deadline"), limit=3)
    assert response.outcome.extractive.reason == outcome_pb2.EXTRACTIVE_REASON_DEADLINE

    arrived = len(provider.arrivals)
    call = GenerateServiceStub(generated).Generate(unlike("left"), timeout=10, metadata=_metadata())
    exchange = await provider.arrival(arrived)
    call.cancel()
    await asyncio.wait_for(exchange.left.wait(), 5)
    assert exchange.left_at is not None


async def test_a_stream_of_the_process_tells_text_a_retraction_and_one_final_event(
    generated: grpc.aio.Channel, provider: ScriptedProvider
) -> None:
    provider.script(replies.answer(REPLY, pieces=20))
    *deltas, last = await stream(generated, request())
    assert "".join(event.delta for event in deltas) == TEXT
    assert last.final.text == TEXT
    assert last.final.outcome.generated.acceptance == outcome_pb2.ACCEPTANCE_ACCEPTED
    assert last.final.provenance.candidate == "primary"

    provider.script(replies.stream(replies.chunk(BEGUN)))
    shown, retracted, last = await stream(generated, request())
    assert shown.delta == TEXT
    assert retracted.retraction.reason == outcome_pb2.RETRACTION_REASON_INTERRUPTED
    assert last.final.outcome.extractive.reason == outcome_pb2.EXTRACTIVE_REASON_MODEL_UNAVAILABLE

    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stream(generated, pb.GenerateRequest())
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_reader_of_a_stream_who_leaves_ends_the_providers_work(
    generated: grpc.aio.Channel, provider: ScriptedProvider
) -> None:
    provider.script(replies.stalled(replies.chunk(BEGUN)))
    asked = pb.GenerateStreamRequest(task=request())
    call = GenerateServiceStub(generated).GenerateStream(asked, timeout=10, metadata=_metadata())
    assert (await anext(aiter(call))).delta == TEXT
    call.cancel()
    exchange = provider.arrivals[-1]
    await asyncio.wait_for(exchange.left.wait(), 5)
    assert exchange.left_at is not None


async def test_the_extractive_process_streams_too(extractive: grpc.aio.Channel) -> None:
    delta, last = await stream(extractive, request())
    assert delta.delta == last.final.text == f"{SENTENCE} [S1]"
    assert last.final.outcome.extractive.reason == outcome_pb2.EXTRACTIVE_REASON_NONE
    (last,) = await stream(extractive, request("Who pays for lunch?"))
    assert last.final.outcome.WhichOneof("mode") == "abstained"


# The last of those on this process: a throttle cools its pool.
async def test_the_generated_process_answers_and_words_every_failure(
    generated: grpc.aio.Channel, provider: ScriptedProvider
) -> None:
    provider.script(replies.answer(REPLY))
    answered = await generate(generated, request())
    assert answered.outcome.generated.acceptance == outcome_pb2.ACCEPTANCE_ACCEPTED
    assert answered.text == TEXT
    assert [c.label for c in answered.citations] == ["S1"]
    usage = answered.usage
    assert (usage.input_tokens, usage.output_tokens, usage.attempts) == (40, 12, 1)
    assert usage.model == "scripted-model-2026"
    assert answered.provenance == outcome_pb2.Provenance(candidate="primary")

    again = await generate(generated, request())
    assert again.provenance.HasField("cached_age")
    assert (again.text, again.outcome, again.usage.attempts) == (TEXT, answered.outcome, 0)

    failures = [
        (replies.refused(500), "extractive", outcome_pb2.EXTRACTIVE_REASON_MODEL_UNAVAILABLE),
        (replies.answer("no JSON"), "extractive", outcome_pb2.EXTRACTIVE_REASON_INVALID_OUTPUT),
        (
            replies.refused(400, "content_filter"),
            "unavailable",
            outcome_pb2.UNAVAILABLE_REASON_REFUSED,
        ),
        # Last, since it cools the pool down.
        (replies.refused(429), "extractive", outcome_pb2.EXTRACTIVE_REASON_CAPACITY),
    ]
    for scripted, mode, reason in failures:
        provider.script(scripted)
        response = await generate(generated, unlike(f"{mode}-{reason}"))
        assert response.outcome.WhichOneof("mode") == mode
        assert getattr(response.outcome, mode).reason == reason
        assert response.text == (f"{SENTENCE} [S1]" if mode == "extractive" else "")
        assert response.usage.attempts == 1

    previous = (await generate(generated, request())).outcome
    assert previous.generated.acceptance == outcome_pb2.ACCEPTANCE_ACCEPTED

    asked = request()
    del asked.messages[:]
    with pytest.raises(InvalidInput) as refused:
        await generate(generated, asked)
    assert refused.value.field == "messages"


async def _opened(channel: grpc.aio.Channel, provider: ScriptedProvider) -> None:
    """Returns after the first call that the pool admits."""
    provider.script(replies.answer("{}"))
    deadline = time.monotonic() + OPENS_WITHIN
    while time.monotonic() < deadline:
        if (await generate(channel, unlike("opening"))).usage.attempts:
            return
    raise AssertionError("the pool did not open")


def unlike(name: str) -> pb.GenerateRequest:
    """A request that no other test has made, so that nothing is stored for it."""
    return request(instructions_version=name)
