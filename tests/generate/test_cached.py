"""Answers that are given again: when, to whom, and never in the way of anybody."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from capacity import Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from services.generate.audience import Delta, Final
from services.generate.cache import PREFIX, AnswerCache
from services.generate.pipeline import Memory
from services.generate.result import Result, Spent, Switch
from services.generate.task import Task
from services.generate.verdict import (
    Abstained,
    AbstainedReason,
    Acceptance,
    Extractive,
    ExtractiveReason,
    Generated,
    Previous,
    PreviousReason,
    Unavailable,
    UnavailableReason,
)
from tests.capacity.server import running_server
from tests.generate.asking import (
    EXTRACTION,
    MODEL,
    QUALIFIED,
    SOURCES,
    TASK,
    TEXT,
    Desk,
    policy,
    reply,
    streamed,
)
from tests.scripted_provider import replies
from tests.scripted_provider.pool import Pool
from tests.scripted_provider.server import Reply

ACCEPTED = Generated(Acceptance.ACCEPTED)
SECRET = b"a secret of this test"
NEVER = -1.0  # seconds: no entry is as fresh
GOOD = replies.answer(reply())


@pytest.fixture
async def cache(redis_url: str) -> AsyncIterator[AnswerCache]:
    cache = AnswerCache.connect(redis_url, kept=60, limit=5)
    yield cache
    await cache.close()


@pytest.fixture
def task() -> Task:
    """Nobody else asks this."""
    return replace(TASK, tenant=uuid.uuid4().hex)


def fresh(cache: AnswerCache, **changed: object) -> Memory:
    memory = Memory(cache, SECRET, fresh=30, stale=60)
    return replace(memory, **changed)  # type: ignore[arg-type] # only ever fields


async def test_another_tenant_or_other_evidence_is_another_question(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    desk.script(GOOD, GOOD, GOOD)
    made = desk.pipeline(memory=fresh(cache))
    changed = replace(SOURCES[1], text=f"{SOURCES[1].text} Not even then.")
    for each in (task, replace(task, tenant="other"), replace(task, sources=(SOURCES[0], changed))):
        await made.answer(each)
    assert len(desk.provider.arrivals) == 3


async def test_the_acceptance_is_kept_with_the_answer(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    text = "Whales sing in the northern fjords. [S1]"
    desk.script(replies.answer(reply(text)))
    made = desk.pipeline(memory=fresh(cache))
    for _ in range(2):
        result = await made.answer(task)
        assert (result.verdict, result.text) == (Generated(Acceptance.REVIEW_REQUIRED), text)
    assert len(desk.provider.arrivals) == 1


@pytest.mark.parametrize(
    "scripted",
    [
        replies.answer(reply(status="insufficient", sources=())),
        replies.answer("no JSON"),
        replies.declined(),
        replies.refused(500),
        replies.cut(reply()),
    ],
)
async def test_only_a_whole_validated_answer_is_stored(
    desk: Desk, cache: AnswerCache, task: Task, scripted: Reply
) -> None:
    desk.script(scripted, GOOD)
    made = desk.pipeline(memory=fresh(cache), policy=policy(1))
    assert (await made.answer(task)).verdict != ACCEPTED
    result = await made.answer(task)
    assert (result.verdict, result.provenance.cached_age) == (ACCEPTED, None)


async def test_an_entry_tells_nothing_of_whose_sources_it_cites(
    desk: Desk, cache: AnswerCache, task: Task, redis_url: str
) -> None:
    desk.script(GOOD)
    named = tuple(replace(each, document="secret.md", title="Secret") for each in SOURCES)
    async with Redis.from_url(redis_url) as redis:
        before = {key async for key in redis.scan_iter(f"{PREFIX}*")}
        await desk.pipeline(memory=fresh(cache)).answer(replace(task, sources=named))
        (key,) = {key async for key in redis.scan_iter(f"{PREFIX}*")} - before
        value = await redis.get(key)
        assert isinstance(value, bytes)
        assert 0 < await redis.pttl(key) <= 60_000
    assert b"S1" in value
    assert b"ecret" not in value + key
    assert b"40" not in value


async def test_an_entry_that_cannot_be_read_is_none(
    desk: Desk, cache: AnswerCache, task: Task, redis_url: str
) -> None:
    desk.script(GOOD, GOOD)
    made = desk.pipeline(memory=fresh(cache))
    async with Redis.from_url(redis_url) as redis:
        before = {key async for key in redis.scan_iter(f"{PREFIX}*")}
        await made.answer(task)
        (key,) = {key async for key in redis.scan_iter(f"{PREFIX}*")} - before
        await redis.set(key, b'{"text": "Anything. [S1]"}')
    assert (await made.answer(task)).text == TEXT
    assert len(desk.provider.arrivals) == 2


async def test_an_answer_of_another_candidate_is_not_given_as_the_firsts(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    bad = replies.refused(503)
    desk.script(bad, bad, GOOD, GOOD)
    backup = desk.candidate("backup", qualification=QUALIFIED)
    made = desk.pipeline(desk.candidate(), backup, memory=fresh(cache))
    assert (await made.answer(task)).provenance.switch is Switch.UNAVAILABLE
    again = await made.answer(task)
    assert (again.provenance.candidate, again.provenance.cached_age) == ("primary", None)


async def test_a_stream_is_nobodys_cache_unless_it_is_to_be_replayed(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    desk.script(GOOD, GOOD, GOOD)
    plain = desk.pipeline(memory=fresh(cache))
    await plain.answer(task)
    await streamed(plain, task)
    assert len(desk.provider.arrivals) == 2

    desk.events.clear()
    delta, final = await streamed(desk.pipeline(memory=fresh(cache, replays_streams=True)), task)
    assert desk.events == ["call:begin", "cache:hit", "call:ok"]
    assert delta == Delta(TEXT)
    assert isinstance(final, Final)
    assert final.result.provenance.cached_age is not None
    assert len(desk.provider.arrivals) == 2


async def test_a_stream_that_is_to_be_replayed_is_stored(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    desk.script(GOOD)
    made = desk.pipeline(memory=fresh(cache, replays_streams=True))
    await streamed(made, task)
    assert desk.events[1:3] == ["cache:miss", "stream-begin"]
    assert desk.events[-3:] == ["stream-end", "cache:store", "call:ok"]
    assert (await made.answer(task)).provenance.cached_age is not None


async def test_equal_questions_at_once_are_answered_once(
    desk: Desk, cache: AnswerCache, task: Task, pool: Pool
) -> None:
    driven = replies.Driven()
    desk.script(driven)
    made = desk.pipeline(memory=fresh(cache))
    asking = [asyncio.create_task(made.answer(task)) for _ in range(5)]
    await desk.provider.arrival(0)
    driven.send(replies.chunk(reply(), finish="stop"), replies.usage())
    driven.end()
    results = await asyncio.gather(*asking)
    assert {(result.verdict, result.text) for result in results} == {(ACCEPTED, TEXT)}
    assert [result.spent for result in results] == [
        Spent(1, 40, 12, MODEL),
        *[Spent(model=MODEL)] * 4,
    ]
    assert desk.events.count("cache:join") == 4
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, 52)


async def test_who_waits_for_an_answer_does_not_wait_for_batch_work_on_the_same_question(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    driven = replies.Driven()
    desk.script(driven, replies.answer(reply()))
    made = desk.pipeline(memory=fresh(cache))
    batch = asyncio.create_task(made.answer(replace(task, workload=Workload.BATCH)))
    await desk.provider.arrival(0)
    assert (await made.answer(task)).verdict == ACCEPTED
    driven.send(replies.chunk(reply(), finish="stop"), replies.usage())
    driven.end()
    assert (await batch).verdict == ACCEPTED
    assert desk.events.count("cache:join") == 0


async def test_a_first_who_leaves_takes_nobody_with_them(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    driven = replies.Driven()
    desk.script(driven)
    made = desk.pipeline(memory=fresh(cache))
    first, second = (asyncio.create_task(made.answer(task)) for _ in range(2))
    await desk.provider.arrival(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    driven.send(replies.chunk(reply(), finish="stop"))
    driven.end()
    assert (await second).text == TEXT
    assert len(desk.provider.arrivals) == 1


async def test_when_all_have_left_the_provider_is_let_go(
    desk: Desk, cache: AnswerCache, task: Task, pool: Pool
) -> None:
    desk.script(replies.stalled(), GOOD)
    made = desk.pipeline(memory=fresh(cache))
    asking = [asyncio.create_task(made.answer(task)) for _ in range(2)]
    exchange = await desk.provider.arrival(0)
    for each in asking:
        each.cancel()
    assert all(isinstance(end, asyncio.CancelledError) for end in await _ends(asking))
    await asyncio.wait_for(exchange.left.wait(), 2)
    assert await pool.places_taken() == 0
    assert (await made.answer(task)).text == TEXT


async def test_each_of_those_who_wait_has_a_time_of_their_own(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    driven = replies.Driven()
    desk.script(driven)
    made = desk.pipeline(memory=fresh(cache))

    async def within(seconds: float) -> Result:
        deadlines.enter(Deadline.after(seconds))
        return await made.answer(task)

    short, long = (asyncio.create_task(within(seconds)) for seconds in (0.5, 20))
    assert (await short).verdict == Unavailable(UnavailableReason.DEADLINE)
    driven.send(replies.chunk(reply(), finish="stop"))
    driven.end()
    assert (await long).verdict == ACCEPTED
    assert len(desk.provider.arrivals) == 1


async def test_what_fails_for_one_fails_for_all_who_wait(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    desk.script(replies.declined())
    made = desk.pipeline(memory=fresh(cache))
    results = await asyncio.gather(*(made.answer(task) for _ in range(3)))
    assert {result.verdict for result in results} == {Unavailable(UnavailableReason.REFUSED)}
    assert len(desk.provider.arrivals) == 1


async def test_a_question_that_is_cancelled_while_it_is_looked_up_goes_no_further(
    desk: Desk, task: Task, tmp_path: Path
) -> None:
    with running_server(tmp_path) as server:
        cache = AnswerCache.connect(server.url, kept=60, limit=5)
        server.stop()
        begun = asyncio.Event()
        made = replace(desk.pipeline(memory=fresh(cache)), tell=lambda _: begun.set())
        asking = asyncio.create_task(made.answer(task))
        await asyncio.wait_for(begun.wait(), 5)
        asking.cancel()
        assert isinstance((await _ends([asking]))[0], asyncio.CancelledError)
        server.go_on()
        await cache.close()
    assert desk.provider.arrivals == []


async def test_a_redis_that_stands_still_is_a_miss_and_comes_back_by_itself(
    desk: Desk, task: Task, tmp_path: Path
) -> None:
    now = [0.0]
    with running_server(tmp_path) as server:
        # This client by itself would wait for ever.
        redis = Redis.from_url(server.url, socket_timeout=None)
        cache = AnswerCache(redis, kept=60, limit=0.1, clock=lambda: now[0])
        desk.script(GOOD, GOOD)
        made = desk.pipeline(memory=fresh(cache))
        server.stop()
        async with asyncio.timeout(20):
            assert (await made.answer(task)).verdict == ACCEPTED
        assert desk.events[1] == "cache:miss"
        assert "cache:store" not in desk.events
        server.go_on()
        now[0] += 1
        await made.answer(task)
        assert (await made.answer(task)).provenance.cached_age is not None
        await cache.close()
    assert len(desk.provider.arrivals) == 2


async def test_a_redis_that_was_lost_is_not_asked_again_at_once(tmp_path: Path) -> None:
    now = [0.0]
    answer = Result(ACCEPTED, TEXT, spent=Spent(model=MODEL))
    with running_server(tmp_path) as server:
        redis = Redis.from_url(server.url, socket_timeout=None)
        cache = AnswerCache(redis, kept=60, limit=2, clock=lambda: now[0])
        assert await cache.keep("key", answer)
        hurried = AnswerCache(redis, kept=60, limit=0.1, clock=lambda: now[0])
        server.stop()
        assert await hurried.find("key") is None
        server.go_on()
        assert await cache.find("key") is not None
        assert await hurried.find("key") is None
        now[0] += 1
        assert await hurried.find("key") is not None
        await cache.close()


UNASKED = [
    (replies.refused(503), PreviousReason.MODEL_UNAVAILABLE),
    (replies.refused(401), PreviousReason.MODEL_UNAVAILABLE),
    (replies.refused(429, headers={"retry-after": "60"}), PreviousReason.CAPACITY),
]


@pytest.mark.parametrize(("scripted", "reason"), UNASKED)
async def test_an_earlier_answer_stands_in_with_its_age_where_no_model_can_be_asked(
    desk: Desk, cache: AnswerCache, task: Task, scripted: Reply, reason: PreviousReason
) -> None:
    desk.script(GOOD, scripted)
    made = desk.pipeline(memory=fresh(cache, fresh=NEVER), extraction=EXTRACTION, policy=policy(1))
    await made.answer(task)
    result = await made.answer(task)
    assert isinstance(result.verdict, Previous)
    assert (result.verdict.reason, result.verdict.acceptance) == (reason, Acceptance.ACCEPTED)
    assert 0 <= result.verdict.age < 60
    assert result.provenance.cached_age == result.verdict.age
    assert (result.text, result.provenance.candidate) == (TEXT, "primary")
    assert result.spent.attempts == 1


async def test_an_earlier_answer_that_needed_a_review_still_needs_it(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    desk.script(replies.answer(reply("Whales sing in the fjords. [S1]")), replies.refused(503))
    made = desk.pipeline(memory=fresh(cache, fresh=NEVER), policy=policy(1))
    await made.answer(task)
    verdict = (await made.answer(task)).verdict
    assert isinstance(verdict, Previous)
    assert verdict.acceptance is Acceptance.REVIEW_REQUIRED


async def test_an_earlier_answer_of_another_candidate_may_stand_in_too(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    bad = replies.refused(503)
    desk.script(bad, bad, GOOD, *[bad] * 3)
    backup = desk.candidate("backup", qualification=QUALIFIED)
    made = desk.pipeline(desk.candidate(), backup, memory=fresh(cache))
    await made.answer(task)
    result = await made.answer(task)
    assert isinstance(result.verdict, Previous)
    assert result.provenance.candidate == "backup"


async def test_an_answer_that_is_too_old_or_of_other_evidence_does_not_stand_in(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    desk.script(GOOD, replies.refused(503), replies.refused(503))
    old = desk.pipeline(memory=fresh(cache, fresh=NEVER, stale=NEVER), policy=policy(1))
    await old.answer(task)
    gone = Unavailable(UnavailableReason.MODEL_UNAVAILABLE)
    assert (await old.answer(task)).verdict == gone
    made = desk.pipeline(memory=fresh(cache, fresh=NEVER), policy=policy(1))
    assert (await made.answer(replace(task, sources=SOURCES[:1]))).verdict == gone


INSTEAD: list[tuple[Reply, UnavailableReason]] = [
    (replies.refused(503), UnavailableReason.MODEL_UNAVAILABLE),
    (replies.refused(429), UnavailableReason.CAPACITY),
    (replies.answer("no JSON"), UnavailableReason.INVALID_OUTPUT),
]


@pytest.mark.parametrize(("scripted", "reason"), INSTEAD)
async def test_quotations_stand_in_where_policy_has_them(
    desk: Desk, scripted: Reply, reason: UnavailableReason
) -> None:
    desk.script(scripted)
    result = await desk.pipeline(extraction=EXTRACTION, policy=policy(1)).answer(TASK)
    assert result.verdict == Extractive(ExtractiveReason[reason.name])
    assert result.text.startswith("The deploy window is Monday to Thursday")
    assert (result.provenance.candidate, result.spent.attempts) == ("", 1)


@pytest.mark.parametrize(("scripted", "reason"), INSTEAD)
async def test_without_that_policy_there_is_plainly_no_answer(
    desk: Desk, scripted: Reply, reason: UnavailableReason
) -> None:
    desk.script(scripted)
    result = await desk.pipeline(policy=policy(1)).answer(TASK)
    assert (result.verdict, result.text) == (Unavailable(reason), "")


async def test_what_the_sources_do_not_answer_is_unavailable_and_no_abstention(desk: Desk) -> None:
    desk.script(replies.refused(503))
    asked = replace(TASK, question="Who pays for lunch?")
    result = await desk.pipeline(extraction=EXTRACTION, policy=policy(1)).answer(asked)
    assert result.verdict == Unavailable(UnavailableReason.MODEL_UNAVAILABLE)


async def test_a_refusal_and_an_abstention_are_kept_whatever_could_stand_in(
    desk: Desk, cache: AnswerCache, task: Task
) -> None:
    insufficient = replies.answer(reply(status="insufficient", sources=()))
    desk.script(GOOD, replies.declined(), insufficient)
    made = desk.pipeline(memory=fresh(cache, fresh=NEVER), extraction=EXTRACTION)
    await made.answer(task)
    assert (await made.answer(task)).verdict == Unavailable(UnavailableReason.REFUSED)
    abstained = Abstained(AbstainedReason.EVIDENCE_INSUFFICIENT)
    assert (await made.answer(task)).verdict == abstained


async def _ends(tasks: list[asyncio.Task[Result]]) -> list[Result | BaseException]:
    return await asyncio.gather(*tasks, return_exceptions=True)
