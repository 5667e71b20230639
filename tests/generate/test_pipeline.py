"""The order of the pipeline, and every way a question can go through it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from capacity import SharedBucket, Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from services.generate.audience import Delta, Final, Retracted, Withdrawal
from services.generate.cache import AnswerCache
from services.generate.delivery import deliver
from services.generate.pipeline import Memory
from services.generate.result import Result, Spent
from services.generate.verdict import (
    Abstained,
    AbstainedReason,
    Acceptance,
    Extractive,
    ExtractiveReason,
    Generated,
    Unavailable,
    UnavailableReason,
    Verdict,
)
from tests.generate.asking import (
    EXTRACTION,
    FIRST,
    INPUT,
    MESSAGES,
    MODEL,
    OUTPUT,
    TASK,
    TEXT,
    Desk,
    policy,
    reply,
    streamed,
)
from tests.scripted_provider import replies
from tests.scripted_provider.pool import PLACES, SLOW, Pool
from tests.scripted_provider.server import Reply, ScriptedProvider

ACCEPTED = Generated(Acceptance.ACCEPTED)
REVIEW = Generated(Acceptance.REVIEW_REQUIRED)
SPENT = Spent(1, 40, 12, MODEL)
BEGIN = ["attempt:begin", "provider:1"]
AGAIN = ["attempt:fail", "retry:wait", "attempt:begin", "provider:2"]

ROWS = {
    "miss": ([replies.answer(reply())], 3, [*BEGIN, "attempt:ok"], "ok"),
    "recovered": (
        [replies.refused(503), replies.answer(reply())],
        3,
        [*BEGIN, *AGAIN, "attempt:ok"],
        "ok",
    ),
    "exhausted": (
        [replies.refused(503), replies.refused(503)],
        2,
        [*BEGIN, *AGAIN, "attempt:fail"],
        "fail",
    ),
    "not transient": ([replies.refused(401)], 3, [*BEGIN, "attempt:fail"], "fail"),
}


def unavailable(reason: UnavailableReason) -> Unavailable:
    return Unavailable(reason)


@pytest.fixture
async def memory(redis_url: str) -> AsyncIterator[Memory]:
    cache = AnswerCache.connect(redis_url, kept=60, limit=2)
    yield Memory(cache, b"a secret of this test", fresh=30, stale=60)
    await cache.close()


@pytest.mark.parametrize("row", ROWS)
async def test_the_events_of_a_buffered_question_are_exactly_those_of_the_design(
    desk: Desk, memory: Memory, row: str
) -> None:
    scripted, attempts, told, end = ROWS[row]
    desk.script(*scripted)
    task = replace(TASK, tenant=f"tenant of {row}")
    await desk.pipeline(policy=policy(attempts), memory=memory).answer(task)
    stored = ["cache:store"] if end == "ok" else []
    assert desk.events == ["call:begin", "cache:miss", *told, *stored, f"call:{end}"]


async def test_the_events_of_a_hit_are_exactly_those_of_the_design(
    desk: Desk, memory: Memory
) -> None:
    task = replace(TASK, tenant="tenant of a hit")
    desk.script(replies.answer(reply()))
    pipeline = desk.pipeline(memory=memory)
    made = await pipeline.answer(task)
    desk.events.clear()
    found = await pipeline.answer(task)
    assert desk.events == ["call:begin", "cache:hit", "call:ok"]
    assert (found.verdict, found.text, found.citations) == (ACCEPTED, TEXT, made.citations)
    assert found.spent == Spent(model=MODEL)
    assert found.provenance.cached_age is not None


@pytest.mark.parametrize("row", ROWS)
async def test_the_events_of_a_streamed_question_are_the_same_without_the_cache(
    desk: Desk, memory: Memory, row: str
) -> None:
    scripted, attempts, told, end = ROWS[row]
    desk.script(*scripted)
    await streamed(desk.pipeline(policy=policy(attempts), memory=memory))
    assert desk.events == ["call:begin", "stream-begin", *told, "stream-end", f"call:{end}"]


async def test_an_answer_that_its_sources_carry_is_accepted_word_for_word(
    desk: Desk, pool: Pool
) -> None:
    desk.script(replies.answer(reply(), pieces=9))
    result = await desk.pipeline().answer(TASK)
    assert (result.verdict, result.text, result.spent) == (ACCEPTED, TEXT, SPENT)
    assert [(c.label, TEXT[c.start : c.end]) for c in result.citations] == [
        ("S1", FIRST),
        ("S2", "Deploys are never allowed on Fridays [S2]."),
    ]
    assert (result.provenance.candidate, result.provenance.switch) == ("primary", None)
    sent = desk.provider.arrivals[0].body
    assert sent["messages"] == [{"role": m.role.value, "content": m.content} for m in MESSAGES]
    assert "response_format" not in sent
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, 52)


async def test_an_endpoint_that_can_is_held_to_the_schema(desk: Desk) -> None:
    desk.script(replies.answer(reply()))
    result = await desk.pipeline(desk.candidate(has_schema=True)).answer(TASK)
    schema = desk.provider.arrivals[0].body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["status", "answer", "source_ids"]
    assert result.provenance.is_structured


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
    desk: Desk, text: str
) -> None:
    desk.script(replies.answer(reply(text)))
    result = await desk.pipeline().answer(TASK)
    assert (result.verdict, result.text) == (REVIEW, text)


VERDICTS: list[tuple[Reply, Verdict]] = [
    (
        replies.answer(reply(status="insufficient", sources=())),
        Abstained(AbstainedReason.EVIDENCE_INSUFFICIENT),
    ),
    (replies.answer("The window is Monday. [S1]"), unavailable(UnavailableReason.INVALID_OUTPUT)),
    (replies.answer(reply(sources=("S1", "S9"))), unavailable(UnavailableReason.INVALID_OUTPUT)),
    (replies.answer(reply(sources=("S1",))), unavailable(UnavailableReason.INVALID_OUTPUT)),
    (replies.answer(""), unavailable(UnavailableReason.INVALID_OUTPUT)),
    (
        replies.stream(replies.chunk(reply(), finish="length")),
        unavailable(UnavailableReason.INVALID_OUTPUT),
    ),
    (
        replies.stream(replies.chunk(None, finish="content_filter")),
        unavailable(UnavailableReason.REFUSED),
    ),
    (
        replies.stream(replies.chunk(refusal="no", finish="stop")),
        unavailable(UnavailableReason.REFUSED),
    ),
    (replies.refused(400, "content_filter"), unavailable(UnavailableReason.REFUSED)),
    (replies.refused(500), unavailable(UnavailableReason.MODEL_UNAVAILABLE)),
    (replies.refused(401), unavailable(UnavailableReason.MODEL_UNAVAILABLE)),
    (replies.refused(404), unavailable(UnavailableReason.MODEL_UNAVAILABLE)),
    (
        replies.refused(400, "context_length_exceeded"),
        unavailable(UnavailableReason.MODEL_UNAVAILABLE),
    ),
    (replies.cut(reply()), unavailable(UnavailableReason.MODEL_UNAVAILABLE)),
    (replies.broken(reply()[:12]), unavailable(UnavailableReason.MODEL_UNAVAILABLE)),
    (replies.stream(b"data: nonsense\n\n"), unavailable(UnavailableReason.MODEL_UNAVAILABLE)),
]


@pytest.mark.parametrize(("scripted", "verdict"), VERDICTS)
async def test_every_other_end_has_its_verdict_no_text_and_one_settled_attempt(
    desk: Desk, pool: Pool, scripted: Reply, verdict: Verdict
) -> None:
    desk.script(scripted)
    result = await desk.pipeline(policy=policy(1)).answer(TASK)
    assert (result.verdict, result.text, result.citations) == (verdict, "", ())
    assert result.spent.attempts == len(desk.provider.arrivals) == 1
    assert await pool.places_taken() == 0
    used = 52 if result.spent.input_tokens is not None else INPUT + OUTPUT
    refused = unavailable(UnavailableReason.REFUSED)
    assert await pool.tokens_spent() == used or verdict == refused


@pytest.mark.parametrize(("scripted", "verdict"), VERDICTS)
async def test_a_stream_has_the_same_verdicts_and_shows_nothing_of_them(
    desk: Desk, scripted: Reply, verdict: Verdict
) -> None:
    desk.script(scripted)
    *shown, final = await streamed(desk.pipeline(policy=policy(1)))
    assert isinstance(final, Final)
    assert (final.result.verdict, final.result.text) == (verdict, "")
    # A text is shown before the list of its sources can be wrong.
    assert [type(event) for event in shown] in ([], [Delta, Retracted])


@pytest.mark.parametrize(
    ("scripted", "level"),
    [
        (replies.refused(401), "error"),
        (replies.refused(404), "error"),
        (replies.refused(503), "warning"),
    ],
)
async def test_what_operators_have_to_mend_is_an_error_in_the_log(
    desk: Desk, scripted: Reply, level: str
) -> None:
    desk.script(scripted)
    with capture_logs() as logs:
        await desk.pipeline(policy=policy(1)).answer(TASK)
    (entry,) = [entry for entry in logs if entry["event"] == "answer_failed"]
    assert entry["log_level"] == level


async def test_without_sources_no_model_is_asked(desk: Desk) -> None:
    nothing = Result(Abstained(AbstainedReason.NOTHING_FOUND))
    assert await desk.pipeline().answer(replace(TASK, sources=())) == nothing
    assert desk.provider.arrivals == []


async def test_messages_that_nobody_counted_reserve_a_bounded_default(
    desk: Desk, pool: Pool
) -> None:
    desk.script(replies.stream(replies.chunk(reply(), finish="stop")))
    result = await desk.pipeline().answer(replace(TASK, input_tokens=0))
    assert result.spent == Spent(1, None, None, MODEL)
    bytes_of_messages = sum(len(message.content) for message in MESSAGES)
    assert await pool.tokens_spent() == bytes_of_messages + OUTPUT


async def test_a_full_pool_is_capacity_before_the_provider_sees_anything(
    desk: Desk, pool: Pool
) -> None:
    async with AsyncExitStack() as held:
        for _ in range(PLACES):
            await held.enter_async_context(pool.bucket.reserve(1, Workload.INTERACTIVE))
        result = await desk.pipeline().answer(TASK)
    assert result == Result(unavailable(UnavailableReason.CAPACITY), spent=Spent())
    assert desk.events == ["call:begin", "call:fail"]


async def test_a_bucket_that_cannot_be_asked_lets_nothing_through(
    desk: Desk, free_port: Callable[[], int]
) -> None:
    bucket = SharedBucket.connect(
        f"redis://127.0.0.1:{free_port()}/0", "answers", SLOW, local_share=0
    )
    result = await desk.pipeline(desk.candidate(bucket=bucket)).answer(TASK)
    await bucket.close()
    assert result == Result(unavailable(UnavailableReason.CAPACITY), spent=Spent())
    assert desk.provider.arrivals == []


@pytest.mark.parametrize("parts", [(), (replies.chunk("half"),)])
async def test_a_cancelled_answer_lets_the_provider_go_and_settles(
    desk: Desk, pool: Pool, parts: tuple[bytes, ...]
) -> None:
    desk.script(replies.stalled(*parts))
    call = asyncio.create_task(desk.pipeline().answer(TASK))
    exchange = await desk.provider.arrival(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(exchange.left.wait(), 2)
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, INPUT + OUTPUT)
    assert desk.events[-2:] == ["attempt:cancelled", "call:cancelled"]


async def test_a_spent_deadline_is_an_outcome_in_time_to_quote(desk: Desk, pool: Pool) -> None:
    desk.script(replies.stalled(replies.chunk("half")))
    made = desk.pipeline(extraction=EXTRACTION)
    deadlines.enter(Deadline.after(2))
    result = await made.answer(TASK)
    assert result.verdict == Extractive(ExtractiveReason.DEADLINE)
    assert result.spent == Spent(1, None, None, MODEL)
    assert await pool.places_taken() == 0


async def test_no_time_at_all_is_a_deadline_without_an_attempt(desk: Desk) -> None:
    deadlines.enter(Deadline.after(0.01))
    result = await desk.pipeline().answer(TASK)
    assert result == Result(unavailable(UnavailableReason.DEADLINE))
    assert desk.provider.arrivals == []


async def test_a_stream_shows_checked_sentences_and_ends_with_the_whole_answer(
    desk: Desk,
) -> None:
    desk.script(replies.answer(reply(), pieces=40))
    *deltas, final = await streamed(desk.pipeline())
    texts = [event.text for event in deltas if isinstance(event, Delta)]
    assert len(texts) == len(deltas)
    assert "".join(texts) == TEXT
    assert texts[0].strip() == FIRST
    assert isinstance(final, Final)
    assert (final.result.verdict, final.result.text) == (ACCEPTED, TEXT)


async def test_what_is_not_carried_is_shown_with_the_verdict_only(desk: Desk) -> None:
    driven = replies.Driven()
    text = f"{FIRST} Whales sing in the northern fjords. [S1]"
    desk.script(driven)
    driven.send(replies.chunk(reply(text)[:-20]))
    async with aclosing(deliver(desk.pipeline(), TASK)) as events:
        assert await anext(events) == Delta(FIRST)
        driven.send(replies.chunk(reply(text)[-20:], finish="stop"))
        driven.end()
        assert await anext(events) == Delta(" Whales sing in the northern fjords. [S1]")
        final = await anext(events)
    assert isinstance(final, Final)
    assert final.result.verdict == REVIEW


WITHDRAWN: list[tuple[list[bytes], Withdrawal, UnavailableReason]] = [
    ([], Withdrawal.INTERRUPTED, UnavailableReason.MODEL_UNAVAILABLE),
    (
        [replies.chunk(None, finish="content_filter")],
        Withdrawal.REFUSED,
        UnavailableReason.REFUSED,
    ),
    (
        [replies.chunk("[S9]"), replies.chunk(finish="stop")],
        Withdrawal.INVALID_OUTPUT,
        UnavailableReason.INVALID_OUTPUT,
    ),
    ([replies.chunk(finish="length")], Withdrawal.INVALID_OUTPUT, UnavailableReason.INVALID_OUTPUT),
]


@pytest.mark.parametrize(("rest", "withdrawal", "reason"), WITHDRAWN)
@pytest.mark.parametrize("quotes", [True, False])
async def test_a_failure_after_text_was_shown_takes_it_back_and_asks_nobody_again(
    desk: Desk,
    rest: list[bytes],
    withdrawal: Withdrawal,
    reason: UnavailableReason,
    quotes: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    begun = reply(f"{FIRST} Deploys are never").removesuffix('", "source_ids": ["S1", "S2"]}')
    desk.script(replies.stream(replies.chunk(begun), *rest))
    asked = policy(5, on_invalid="repair")
    pipeline = desk.pipeline(policy=asked, extraction=EXTRACTION if quotes else None)
    shown, retracted, final = await streamed(pipeline)
    assert shown == Delta(FIRST)
    assert retracted == Retracted(withdrawal)
    assert isinstance(final, Final)
    assert len(desk.provider.arrivals) == 1
    if quotes and reason is not UnavailableReason.REFUSED:
        assert final.result.verdict == Extractive(ExtractiveReason[reason.name])
        assert final.result.text != ""
    else:
        assert final.result == Result(Unavailable(reason), spent=final.result.spent)


async def test_a_deadline_after_text_was_shown_takes_it_back(desk: Desk, pool: Pool) -> None:
    desk.script(replies.stalled(replies.chunk(reply()[:90])))
    made = desk.pipeline()
    deadlines.enter(Deadline.after(1))
    shown, retracted, final = await streamed(made)
    assert isinstance(shown, Delta)
    assert retracted == Retracted(Withdrawal.DEADLINE)
    assert isinstance(final, Final)
    assert final.result.verdict == unavailable(UnavailableReason.DEADLINE)
    assert await pool.places_taken() == 0


async def test_a_failure_before_text_was_shown_is_retried_unseen(desk: Desk) -> None:
    desk.script(replies.stream(replies.chunk(reply()[:30])), replies.answer(reply()))
    *deltas, final = await streamed(desk.pipeline())
    assert "".join(event.text for event in deltas if isinstance(event, Delta)) == TEXT
    assert isinstance(final, Final)
    assert final.result.spent.attempts == 2


async def test_a_reader_who_leaves_ends_the_work_and_frees_its_place(
    desk: Desk, pool: Pool, provider: ScriptedProvider
) -> None:
    desk.script(replies.stalled(replies.chunk(reply()[:90])))
    async with aclosing(deliver(desk.pipeline(), TASK)) as events:
        assert isinstance(await anext(events), Delta)
    await asyncio.wait_for(provider.arrivals[0].left.wait(), 2)
    assert await pool.places_taken() == 0
    assert desk.events[-3:] == ["attempt:cancelled", "stream-end", "call:cancelled"]
