"""Who is asked again, and who instead, after each kind of failure."""

import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from capacity import SharedBucket, Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.identity import AccessLevel
from providers.endpoint import Price
from services.generate.budget import Budget
from services.generate.result import Spent, Switch
from services.generate.retry import Pauses
from services.generate.verdict import (
    Acceptance,
    Generated,
    Unavailable,
    UnavailableReason,
    Verdict,
)
from tests.generate.asking import (
    INPUT,
    MODEL,
    OUTPUT,
    QUALIFIED,
    SOURCES,
    TASK,
    TEXT,
    Desk,
    policy,
    reply,
)
from tests.scripted_provider import replies
from tests.scripted_provider.pool import FAST, PLACES, SLOW, Pool, full_pool
from tests.scripted_provider.server import Reply

ACCEPTED = Generated(Acceptance.ACCEPTED)
REVIEW = Generated(Acceptance.REVIEW_REQUIRED)
MODEL_UNAVAILABLE = Unavailable(UnavailableReason.MODEL_UNAVAILABLE)
CAPACITY = Unavailable(UnavailableReason.CAPACITY)
INVALID = Unavailable(UnavailableReason.INVALID_OUTPUT)
REFUSED = Unavailable(UnavailableReason.REFUSED)
GOOD = replies.answer(reply())
BROKEN = replies.answer("no JSON")


@pytest.fixture
async def other(redis_url: str) -> AsyncIterator[Pool]:
    async with full_pool(redis_url) as pool:
        yield pool


def asked(desk: Desk) -> list[str]:
    """Who was asked, in order."""
    return [arrival.body["model"].removeprefix("model-of-") for arrival in desk.provider.arrivals]


TWICE: list[tuple[Reply, Switch]] = [
    (replies.refused(503), Switch.UNAVAILABLE),
    (replies.cut(reply()), Switch.UNAVAILABLE),
    (replies.broken(reply()[:12]), Switch.UNAVAILABLE),
    (replies.stream(b"data: nonsense\n\n"), Switch.UNAVAILABLE),
]


@pytest.mark.parametrize(("scripted", "switch"), TWICE)
async def test_who_is_unavailable_is_asked_once_more_before_another_one(
    desk: Desk, scripted: Reply, switch: Switch
) -> None:
    desk.script(scripted, scripted, GOOD)
    backup = desk.candidate("backup", qualification=QUALIFIED)
    result = await desk.pipeline(desk.candidate(), backup).answer(TASK)
    assert asked(desk) == ["primary", "primary", "backup"]
    assert (result.verdict, result.text) == (ACCEPTED, TEXT)
    assert (result.provenance.candidate, result.provenance.switch) == ("backup", switch)
    assert result.spent == Spent(3, 40, 12, MODEL)


async def test_who_is_throttled_is_replaced_by_a_candidate_of_another_pool_only(
    desk: Desk, other: Pool
) -> None:
    desk.script(replies.refused(429, headers={"retry-after": "60"}), GOOD)
    same = desk.candidate("same", qualification=QUALIFIED)
    backup = desk.candidate("backup", pool="backup", bucket=other.bucket, qualification=QUALIFIED)
    result = await desk.pipeline(desk.candidate(), same, backup).answer(TASK)
    assert asked(desk) == ["primary", "backup"]
    assert result.provenance.switch is Switch.CAPACITY


async def test_a_throttle_that_outlasts_the_question_ends_it_and_cools_the_pool_for_everybody(
    desk: Desk, pool: Pool
) -> None:
    desk.script(replies.refused(429, headers={"retry-after": "60"}))
    same = desk.candidate("same", qualification=QUALIFIED)
    result = await desk.pipeline(desk.candidate(), same).answer(TASK)
    assert (result.verdict, result.spent.attempts, asked(desk)) == (CAPACITY, 1, ["primary"])
    seen = await pool.replica.snapshot()
    assert sum(seen.in_flight.values()) == 0
    assert 0 < seen.cooldown <= 60
    assert (await desk.pipeline().answer(TASK)).verdict == CAPACITY
    assert len(desk.provider.arrivals) == 1


async def test_a_short_throttle_is_waited_out_as_the_provider_asked(desk: Desk) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    desk.script(replies.refused(429, headers={"retry-after": "7"}))
    pauses = Pauses(chance=lambda: 0.5, sleep=sleep)
    await desk.pipeline(policy=policy(pauses=pauses)).answer(TASK)
    # Nobody slept, so the pool is still cool: it is asked once more when it says.
    assert waited == [7 * 1.125, pytest.approx(7 * 1.125, abs=1)]
    assert desk.events[-4:] == ["attempt:fail", "retry:wait", "retry:wait", "call:fail"]


async def test_who_takes_too_long_is_replaced_at_once(desk: Desk) -> None:
    desk.script(replies.stalled(), GOOD)
    backup = desk.candidate("backup", qualification=QUALIFIED)
    result = await desk.pipeline(desk.candidate(seconds=0.2), backup).answer(TASK)
    assert asked(desk) == ["primary", "backup"]
    assert result.provenance.switch is Switch.TIMEOUT


async def test_who_takes_too_long_is_asked_again_only_if_a_whole_attempt_fits(desk: Desk) -> None:
    desk.script(replies.stalled(), GOOD)
    made = desk.pipeline(desk.candidate(seconds=1))
    result = await made.answer(TASK)
    assert (result.verdict, result.spent.attempts) == (ACCEPTED, 2)
    desk.script(replies.stalled())
    deadlines.enter(Deadline.after(1.9))
    result = await made.answer(TASK)
    assert (result.verdict, result.spent.attempts) == (MODEL_UNAVAILABLE, 1)


async def test_a_full_pool_sends_the_question_to_another_one(desk: Desk, other: Pool) -> None:
    desk.script(GOOD)
    async with AsyncExitStack() as held:
        for _ in range(PLACES):
            await held.enter_async_context(desk.bucket.reserve(1, Workload.INTERACTIVE))
        full = desk.candidate()
        backup = desk.candidate(
            "backup", pool="backup", bucket=other.bucket, qualification=QUALIFIED
        )
        result = await desk.pipeline(full, backup).answer(TASK)
    assert asked(desk) == ["backup"]
    assert (result.provenance.switch, result.spent.attempts) == (Switch.CAPACITY, 1)


async def test_an_open_circuit_sends_the_question_to_another_pool_and_is_no_lack_of_capacity(
    desk: Desk, other: Pool
) -> None:
    for _ in range(5):
        desk.bucket.unavailable()
    assert (await desk.pipeline().answer(TASK)).verdict == MODEL_UNAVAILABLE
    desk.script(GOOD)
    backup = desk.candidate("backup", pool="backup", bucket=other.bucket, qualification=QUALIFIED)
    result = await desk.pipeline(desk.candidate(), backup).answer(TASK)
    assert asked(desk) == ["backup"]
    assert result.provenance.switch is Switch.UNAVAILABLE


async def test_a_bucket_that_is_lost_sends_the_question_to_another_pool(
    desk: Desk, other: Pool, free_port: Callable[[], int]
) -> None:
    lost = SharedBucket.connect(f"redis://127.0.0.1:{free_port()}/0", "lost", SLOW, local_share=0)
    desk.script(GOOD)
    first = desk.candidate(bucket=lost)
    backup = desk.candidate("backup", pool="backup", bucket=other.bucket, qualification=QUALIFIED)
    result = await desk.pipeline(first, backup).answer(TASK)
    await lost.close()
    assert (result.verdict, result.provenance.switch) == (ACCEPTED, Switch.CAPACITY)


SURFACED: list[tuple[Reply, Verdict]] = [
    (replies.refused(401), MODEL_UNAVAILABLE),
    (replies.refused(404), MODEL_UNAVAILABLE),
    (replies.refused(400), MODEL_UNAVAILABLE),
    (replies.refused(400, "context_length_exceeded"), MODEL_UNAVAILABLE),
    (replies.refused(400, "content_filter"), REFUSED),
    (replies.filtered(), REFUSED),
    (replies.declined(), REFUSED),
    (BROKEN, INVALID),
]


@pytest.mark.parametrize(("scripted", "verdict"), SURFACED)
async def test_what_another_attempt_cannot_mend_is_neither_retried_nor_switched(
    desk: Desk, scripted: Reply, verdict: Verdict
) -> None:
    desk.script(scripted)
    backup = desk.candidate("backup", qualification=QUALIFIED)
    result = await desk.pipeline(desk.candidate(), backup).answer(TASK)
    assert (result.verdict, asked(desk)) == (verdict, ["primary"])


async def test_a_broken_reply_is_asked_for_once_more_with_what_was_wrong(
    desk: Desk, pool: Pool
) -> None:
    desk.script(BROKEN, GOOD)
    result = await desk.pipeline(policy=policy(on_invalid="repair")).answer(TASK)
    assert (result.verdict, result.provenance.is_repaired) == (ACCEPTED, True)
    assert result.spent == Spent(2, 80, 24, MODEL)
    first, second = (arrival.body["messages"][-1] for arrival in desk.provider.arrivals)
    assert second["role"] == first["role"]
    assert second["content"].startswith(
        f"{first['content']}\n\nYour reply to this was refused: not"
    )
    assert desk.events[3:6] == ["attempt:ok", "repair:begin", "attempt:begin"]
    assert await pool.tokens_spent() == 104


async def test_a_reply_that_is_broken_twice_is_invalid_and_nobody_is_asked_a_third_time(
    desk: Desk,
) -> None:
    desk.script(BROKEN, BROKEN)
    backup = desk.candidate("backup", qualification=QUALIFIED)
    made = desk.pipeline(desk.candidate(), backup, policy=policy(5, on_invalid="repair"))
    result = await made.answer(TASK)
    assert (result.verdict, asked(desk)) == (INVALID, ["primary", "primary"])


async def test_a_broken_reply_can_be_answered_by_asking_another_candidate(desk: Desk) -> None:
    desk.script(BROKEN, GOOD)
    backup = desk.candidate("backup", qualification=QUALIFIED)
    made = desk.pipeline(desk.candidate(), backup, policy=policy(on_invalid="switch"))
    result = await made.answer(TASK)
    assert asked(desk) == ["primary", "backup"]
    assert result.provenance.switch is Switch.INVALID_OUTPUT
    assert not result.provenance.is_repaired
    desk.script(BROKEN)
    assert (await desk.pipeline(policy=policy(on_invalid="switch")).answer(TASK)).verdict == INVALID


BUDGETS = [
    (Budget(1), 1),
    (Budget(2), 2),
    (Budget(9, tokens=INPUT + OUTPUT), 1),
    (Budget(9, tokens=3 * (INPUT + OUTPUT) - 1), 2),
    (Budget(9, cost=0.0002), 1),
    (Budget(9, cost=0.0005), 2),
    (Budget(9, tokens=INPUT), 0),
    (Budget(9, cost=0.0001), 0),
]


@pytest.mark.parametrize(("budget", "calls"), BUDGETS)
async def test_no_attempt_is_begun_that_does_not_fit_what_is_left(
    desk: Desk, budget: Budget, calls: int
) -> None:
    desk.script(*[replies.refused(503)] * 9)
    candidate = desk.candidate(price=Price(1.0, 2.0))
    result = await desk.pipeline(candidate, policy=policy(budget=budget)).answer(TASK)
    assert len(desk.provider.arrivals) == result.spent.attempts == calls
    assert result.verdict == (MODEL_UNAVAILABLE if calls else CAPACITY)


async def test_a_repair_counts_against_the_budget_too(desk: Desk) -> None:
    desk.script(BROKEN, GOOD)
    made = desk.pipeline(policy=policy(1, on_invalid="repair"))
    assert (await made.answer(TASK)).verdict == INVALID
    assert len(desk.provider.arrivals) == 1


async def test_what_was_really_used_leaves_room_for_more(desk: Desk) -> None:
    desk.script(BROKEN, GOOD)
    budget = Budget(9, tokens=400)
    made = desk.pipeline(policy=policy(budget=budget, on_invalid="repair"))
    assert (await made.answer(TASK)).verdict == ACCEPTED


async def test_a_candidate_for_review_never_has_its_answers_accepted(desk: Desk) -> None:
    desk.script(GOOD)
    only = desk.candidate(qualification=replace(QUALIFIED, is_review=True))
    result = await desk.pipeline(only).answer(TASK)
    assert (result.verdict, result.text) == (REVIEW, TEXT)


async def test_another_model_than_the_qualified_one_forces_a_review(desk: Desk) -> None:
    desk.script(GOOD)
    only = desk.candidate(qualification=replace(QUALIFIED, served_model="scripted-model-2025"))
    assert (await desk.pipeline(only).answer(TASK)).verdict == REVIEW


@pytest.mark.parametrize(
    ("levels", "level", "who"),
    [
        ({AccessLevel.PUBLIC}, AccessLevel.PUBLIC, ["primary", "primary", "backup"]),
        ({AccessLevel.PUBLIC}, AccessLevel.TEAM, ["primary"] * 3),
        ({AccessLevel.TEAM}, AccessLevel.PUBLIC, ["primary", "primary", "backup"]),
        ({AccessLevel.PUBLIC, AccessLevel.TEAM}, AccessLevel.RESTRICTED, ["primary"] * 3),
    ],
)
async def test_sources_above_what_a_candidate_may_see_are_never_sent_to_it(
    desk: Desk, levels: set[AccessLevel], level: AccessLevel, who: list[str]
) -> None:
    desk.script(*[replies.refused(503)] * 3)
    qualification = replace(QUALIFIED, levels=frozenset(levels))
    backup = desk.candidate("backup", qualification=qualification)
    first = replace(SOURCES[0], level=AccessLevel.PUBLIC)
    task = replace(TASK, sources=(first, replace(SOURCES[1], level=level)))
    await desk.pipeline(desk.candidate(), backup).answer(task)
    assert asked(desk) == who


async def test_instructions_that_were_not_evaluated_disable_a_candidate_and_are_told_once(
    desk: Desk,
) -> None:
    backup = desk.candidate("backup", qualification=QUALIFIED)
    made = desk.pipeline(desk.candidate(), backup, policy=policy(2))
    with capture_logs() as logs:
        for _ in range(2):
            desk.script(replies.refused(503), replies.refused(503))
            await made.answer(replace(TASK, instructions_version="en-2"))
    assert asked(desk) == ["primary"] * 4
    (told,) = [entry for entry in logs if entry["event"] == "candidate_disabled"]
    assert (told["candidate"], told["instructions_version"]) == ("backup", "en-2")


async def test_without_any_candidate_the_model_is_unavailable(desk: Desk) -> None:
    only = desk.candidate(qualification=QUALIFIED)
    result = await desk.pipeline(only).answer(replace(TASK, instructions_version="en-2"))
    assert (result.verdict, result.spent.attempts) == (MODEL_UNAVAILABLE, 0)


def test_pauses_double_up_to_a_limit_and_jitter_never_brings_anybody_back_early() -> None:
    least, most = Pauses(1, 5, chance=lambda: 0.0), Pauses(1, 5, chance=lambda: 1.0)
    assert [most.backoff(tries) for tries in (1, 2, 3, 4, 9)] == [1, 2, 4, 5, 5]
    assert [least.backoff(tries) for tries in (1, 2, 9)] == [0.5, 1, 2.5]
    assert (least.asked(8), most.asked(8)) == (8, 10)


async def test_after_a_short_throttle_the_same_candidate_answers(
    desk: Desk, redis_url: str
) -> None:
    bucket = SharedBucket.connect(
        redis_url,
        uuid.uuid4().hex,
        FAST,
        decision_timeout=5,
        lease=0.05,
        local_share=0,
        ramp_seconds=0.2,
    )
    async with bucket.acquire(1, Workload.INTERACTIVE, time.monotonic() + 5) as opened:
        opened.report(1)
    desk.script(replies.refused(429, headers={"retry-after-ms": "100"}), GOOD)
    result = await desk.pipeline(desk.candidate(bucket=bucket)).answer(TASK)
    await bucket.close()
    assert (result.verdict, result.spent.attempts) == (ACCEPTED, 2)
    assert result.provenance.switch is None
