import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
from structlog.testing import capture_logs

from capacity import SharedBucket, Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from providers.chat import ChatClient, ChatOptions
from services.generate.evidence import Scores
from services.generate.generation import UNCOUNTED_TOKENS, Generation
from services.generate.result import Result, Spent, Verdict
from services.generate.task import Message, Role, Task
from tests.generate.sources import prose, source
from tests.scripted_provider import replies
from tests.scripted_provider.pool import PLACES, SLOW, Pool
from tests.scripted_provider.server import Reply, ScriptedProvider

OUTPUT = 50
INPUT = 100
SOURCES = (
    source("S1", prose("The deploy window is Monday to Thursday, 09:30 to 15:30 harbour time.")),
    source("S2", prose("Production deploys are never allowed on Fridays.")),
)
MESSAGES = (Message(Role.SYSTEM, "Only the evidence."), Message(Role.USER, "When?"))
TASK = Task("When is the deploy window?", MESSAGES, SOURCES, Scores.COSINE, INPUT)
TEXT = "The deploy window is Monday to Thursday. [S1] Deploys are never allowed on Fridays [S2]."
SPENT = Spent(1, 40, 12, "scripted-model-2026")

Make = Callable[..., Generation]


def reply(
    text: str = TEXT, status: str = "answered", sources: tuple[str, ...] = ("S1", "S2")
) -> str:
    return json.dumps({"status": status, "answer": text, "source_ids": sources})


@pytest.fixture
async def make(provider: ScriptedProvider, pool: Pool) -> AsyncIterator[Make]:
    async with AsyncExitStack() as held:

        def build(
            *,
            timeout: float = 5,
            is_structured: bool = False,
            url: str = "",
            bucket: SharedBucket | None = None,
        ) -> Generation:
            chat = ChatClient(
                base_url=url or provider.base_url,
                api_key="key",
                model="model-a",
                bucket=bucket or pool.bucket,
                attempt_timeout=timeout,
                options=ChatOptions(output_tokens=OUTPUT),
            )
            held.push_async_callback(chat.close)
            return Generation(chat, support_floor=0.5, is_structured=is_structured)

        yield build


async def test_an_answer_that_its_sources_carry_is_accepted_word_for_word(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.answer(reply(), pieces=9))
    result = await make().answer(TASK)
    assert (result.verdict, result.text, result.spent) == (Verdict.ACCEPTED, TEXT, SPENT)
    assert [(c.label, TEXT[c.start : c.end]) for c in result.citations] == [
        ("S1", "The deploy window is Monday to Thursday. [S1]"),
        ("S2", "Deploys are never allowed on Fridays [S2]."),
    ]
    sent = provider.arrivals[0].body
    assert sent["messages"] == [{"role": m.role.value, "content": m.content} for m in MESSAGES]
    assert "response_format" not in sent
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, 52)


async def test_an_endpoint_that_can_is_held_to_the_schema(
    make: Make, provider: ScriptedProvider
) -> None:
    provider.script(replies.answer(reply()))
    await make(is_structured=True).answer(TASK)
    schema = provider.arrivals[0].body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["status", "answer", "source_ids"]


@pytest.mark.parametrize(
    "text",
    [
        "The deploy window is Monday to Thursday, 09:30 to 17:30. [S1]",
        "Production deploys are allowed on Fridays. [S2]",
        "Whales sing in the northern fjords. [S1]",
        "The deploy window is Monday to Thursday.",
    ],
)
async def test_an_answer_that_its_sources_do_not_clearly_carry_needs_a_review(
    make: Make, provider: ScriptedProvider, text: str
) -> None:
    provider.script(replies.answer(reply(text)))
    result = await make().answer(TASK)
    assert (result.verdict, result.text) == (Verdict.REVIEW_REQUIRED, text)


VERDICTS: list[tuple[Reply, Verdict]] = [
    (replies.answer(reply(status="insufficient", sources=())), Verdict.INSUFFICIENT),
    (replies.answer("The window is Monday. [S1]"), Verdict.INVALID_OUTPUT),
    (replies.answer(reply(sources=("S1", "S9"))), Verdict.INVALID_OUTPUT),
    (replies.answer(reply(sources=("S1",))), Verdict.INVALID_OUTPUT),
    (replies.answer(""), Verdict.INVALID_OUTPUT),
    (replies.stream(replies.chunk(reply(), finish="length")), Verdict.INVALID_OUTPUT),
    (replies.stream(replies.chunk(None, finish="content_filter")), Verdict.REFUSED),
    (replies.stream(replies.chunk(refusal="no", finish="stop")), Verdict.REFUSED),
    (replies.refused(400, "content_filter"), Verdict.REFUSED),
    (replies.refused(500), Verdict.MODEL_UNAVAILABLE),
    (replies.refused(401), Verdict.MODEL_UNAVAILABLE),
    (replies.refused(404), Verdict.MODEL_UNAVAILABLE),
    (replies.refused(400, "context_length_exceeded"), Verdict.MODEL_UNAVAILABLE),
    (replies.cut(reply()), Verdict.MODEL_UNAVAILABLE),
    (replies.broken("half"), Verdict.MODEL_UNAVAILABLE),
    (replies.stream(b"data: nonsense\n\n"), Verdict.MODEL_UNAVAILABLE),
]


@pytest.mark.parametrize(("scripted", "verdict"), VERDICTS)
async def test_every_other_end_has_its_verdict_no_text_and_one_settled_attempt(
    make: Make, provider: ScriptedProvider, pool: Pool, scripted: Reply, verdict: Verdict
) -> None:
    provider.script(scripted)
    result = await make().answer(TASK)
    assert (result.verdict, result.text, result.citations) == (verdict, "", ())
    assert result.spent.attempts == len(provider.arrivals) == 1
    assert await pool.places_taken() == 0
    used = 52 if result.spent.input_tokens is not None else INPUT + OUTPUT
    assert await pool.tokens_spent() == used or verdict is Verdict.REFUSED


async def test_a_throttle_has_its_verdict_and_cools_the_pool_for_everybody(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.refused(429, headers={"retry-after": "3"}))
    result = await make().answer(TASK)
    assert (result.verdict, result.text, result.spent.attempts) == (Verdict.CAPACITY, "", 1)
    seen = await pool.replica.snapshot()
    assert sum(seen.in_flight.values()) == 0
    assert 0 < seen.cooldown <= 3
    assert (await make().answer(TASK)).verdict is Verdict.CAPACITY
    assert len(provider.arrivals) == 1


@pytest.mark.parametrize(
    ("scripted", "level"),
    [
        (replies.refused(401), "error"),
        (replies.refused(404), "error"),
        (replies.refused(503), "warning"),
    ],
)
async def test_what_operators_have_to_mend_is_an_error_in_the_log(
    make: Make, provider: ScriptedProvider, scripted: Reply, level: str
) -> None:
    provider.script(scripted)
    with capture_logs() as logs:
        await make().answer(TASK)
    (entry,) = [entry for entry in logs if entry["event"] == "answer_failed"]
    assert entry["log_level"] == level


async def test_without_sources_no_model_is_asked(make: Make, provider: ScriptedProvider) -> None:
    result = await make().answer(Task("When?", MESSAGES, (), Scores.COSINE, INPUT))
    assert result == Result(Verdict.NOTHING_FOUND)
    assert provider.arrivals == []


async def test_messages_that_nobody_counted_reserve_a_bounded_default(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.stream(replies.chunk(reply(), finish="stop")))
    result = await make().answer(Task("When?", MESSAGES, SOURCES, Scores.COSINE, 0))
    assert result.spent == Spent(1, None, None, "scripted-model-2026")
    assert await pool.tokens_spent() == UNCOUNTED_TOKENS + OUTPUT


async def test_a_model_that_cannot_be_reached_is_unavailable_at_no_cost(
    make: Make, pool: Pool, free_port: Callable[[], int]
) -> None:
    result = await make(url=f"http://127.0.0.1:{free_port()}/v1").answer(TASK)
    assert result.verdict is Verdict.MODEL_UNAVAILABLE
    assert await pool.tokens_spent() == 0


async def test_a_stalled_model_is_unavailable_and_a_spent_request_a_deadline(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    provider.script(replies.stalled(), replies.stalled(replies.chunk("half")))
    assert (await make(timeout=0.2).answer(TASK)).verdict is Verdict.MODEL_UNAVAILABLE
    deadlines.enter(Deadline.after(0.2))
    assert (await make().answer(TASK)).verdict is Verdict.DEADLINE
    assert await pool.places_taken() == 0


async def test_a_full_pool_is_capacity_before_the_provider_sees_anything(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    async with AsyncExitStack() as held:
        for _ in range(PLACES):
            await held.enter_async_context(pool.bucket.reserve(1, Workload.INTERACTIVE))
        result = await make().answer(TASK)
    assert result == Result(Verdict.CAPACITY, spent=Spent())
    assert provider.arrivals == []


async def test_a_bucket_that_cannot_be_asked_lets_nothing_through(
    make: Make, provider: ScriptedProvider, free_port: Callable[[], int]
) -> None:
    bucket = SharedBucket.connect(
        f"redis://127.0.0.1:{free_port()}/0", "answers", SLOW, local_share=0
    )
    result = await make(bucket=bucket).answer(TASK)
    await bucket.close()
    assert result == Result(Verdict.CAPACITY, spent=Spent())
    assert provider.arrivals == []


@pytest.mark.parametrize("parts", [(), (replies.chunk("half"),)])
async def test_a_cancelled_answer_lets_the_provider_go_and_settles(
    make: Make, provider: ScriptedProvider, pool: Pool, parts: tuple[bytes, ...]
) -> None:
    provider.script(replies.stalled(*parts))
    call = asyncio.create_task(make().answer(TASK))
    exchange = await provider.arrival(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(exchange.left.wait(), 2)
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, INPUT + OUTPUT)
