"""What a question may cost is never exceeded, whatever the providers do."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from chassis import deadlines
from chassis.deadlines import Deadline
from providers.endpoint import Price
from services.generate.audience import Delta, Final, Retracted
from services.generate.budget import Budget, Estimate, Ledger, Used
from services.generate.result import Result, Spent
from services.generate.retry import Pauses
from services.generate.verdict import Acceptance, Generated, Unavailable, UnavailableReason
from tests.generate.asking import (
    EXTRACTION,
    INPUT,
    OUTPUT,
    QUALIFIED,
    TASK,
    TEXT,
    Desk,
    desk,
    policy,
    reply,
    streamed,
)
from tests.scripted_provider import replies
from tests.scripted_provider.pool import full_pool
from tests.scripted_provider.server import Reply, ScriptedProvider

CUT = reply()[:90]
KINDS: dict[str, Callable[[], Reply]] = {
    "good": lambda: replies.answer(reply(), pieces=7),
    "insufficient": lambda: replies.answer(reply(status="insufficient", sources=())),
    "unsupported": lambda: replies.answer(reply("Whales sing in the fjords. [S1]")),
    "no JSON": lambda: replies.answer("no JSON"),
    "strange mark": lambda: replies.answer(reply(f"{TEXT} More. [S9]")),
    "too long": lambda: replies.stream(replies.chunk(reply(), finish="length")),
    "503": lambda: replies.refused(503),
    "429": lambda: replies.refused(429, headers={"retry-after-ms": "30"}),
    "429, long": lambda: replies.refused(429, headers={"retry-after": "60"}),
    "401": lambda: replies.refused(401),
    "context": lambda: replies.refused(400, "context_length_exceeded"),
    "filtered": replies.filtered,
    "declined": replies.declined,
    "cut early": lambda: replies.cut(reply()),
    "cut late": lambda: replies.stream(replies.chunk(CUT)),
    "broken": lambda: replies.broken(CUT),
    "nonsense": lambda: replies.stream(b"data: nonsense\n\n"),
    "silent": replies.stalled,
    "stops early": lambda: replies.stalled(replies.chunk(reply()[:20])),
    "stops late": lambda: replies.stalled(replies.chunk(CUT)),
}
GRANTED = 0.05
TICK = 0.005


@dataclass(frozen=True, slots=True)
class Trial:
    """One random question: what the providers do, what it may cost, and who asks."""

    kinds: Sequence[str]
    budget: Budget
    seconds: float
    is_streamed: bool
    on_invalid: str
    quotes: bool

    @classmethod
    def drawn(cls, chance: random.Random) -> "Trial":
        attempts = chance.randint(1, 4)
        return cls(
            kinds=chance.choices(sorted(KINDS), k=6),
            budget=Budget(
                attempts,
                tokens=chance.choice([None, 200, 400]),
                cost=chance.choice([None, 0.0003, 0.0006]),
            ),
            seconds=chance.choice([0.2, 0.3, 0.4]),
            is_streamed=chance.random() < 0.5,
            on_invalid=chance.choice(["fail", "repair", "switch"]),
            quotes=chance.random() < 0.5,
        )

    @property
    def allowed(self) -> int:
        """Calls that fit the budget if none of them says what it used."""
        tokens, cost = self.budget.tokens, self.budget.cost
        by_usage = 52  # what every reply with a usage reports, well below the estimate
        return min(
            self.budget.attempts,
            self.budget.attempts if tokens is None else tokens // by_usage,
            self.budget.attempts if cost is None else int(cost / 0.000064),
        )


async def asked(desk: Desk, trial: Trial) -> tuple[Result, float]:
    """What came of it, and how much later than its deadline.

    A machine that is busy with something else wakes nobody in time, which is not counted.
    """
    price = Price(1.0, 2.0)
    made = desk.pipeline(
        desk.candidate(seconds=0.15, price=price),
        desk.candidate("backup", seconds=0.15, price=price, qualification=QUALIFIED),
        policy=policy(budget=trial.budget, on_invalid=trial.on_invalid, pauses=Pauses(first=0.02)),
        extraction=EXTRACTION if trial.quotes else None,
    )
    deadline = Deadline.after(trial.seconds)
    deadlines.enter(deadline)
    async with lag() as so_far:
        if not trial.is_streamed:
            result = await made.answer(TASK)
            return result, -deadline.remaining() - so_far()
        *before, final = await streamed(made)
        late = -deadline.remaining() - so_far()
    assert isinstance(final, Final)
    shown = "".join(event.text for event in before if isinstance(event, Delta))
    retracted = [event for event in before if isinstance(event, Retracted)]
    assert len(retracted) <= 1
    assert before[-1:] == retracted or not retracted
    assert retracted or shown == final.result.text
    return final.result, late


async def tried(url: str, seed: int) -> tuple[int, Trial, Result, float]:
    """Calls made, in a pool and before a provider of its own."""
    trial = Trial.drawn(random.Random(seed))
    async with AsyncExitStack() as held:
        provider = await held.enter_async_context(ScriptedProvider())
        pool = await held.enter_async_context(full_pool(url))
        opened = await held.enter_async_context(desk(provider, pool.bucket))
        opened.script(*(KINDS[kind]() for kind in trial.kinds))
        result, late = await asked(opened, trial)
        assert sum((await pool.replica.snapshot()).in_flight.values()) == 0
        return len(provider.arrivals), trial, result, late


@asynccontextmanager
async def lag() -> AsyncIterator[Callable[[], float]]:
    """How late timers of this process have been so far, one that is due now included."""
    due, worst = time.monotonic(), 0.0

    def so_far() -> float:
        return max(worst, time.monotonic() - due)

    async def watch() -> None:
        nonlocal due, worst
        while True:
            due = time.monotonic() + TICK
            await asyncio.sleep(TICK)
            worst = so_far()

    watching = asyncio.create_task(watch())
    try:
        yield so_far
    finally:
        watching.cancel()
        await asyncio.wait((watching,))


def holds(calls: int, trial: Trial, result: Result) -> None:
    # One that began when the time was over may not have got as far as the provider.
    assert calls <= result.spent.attempts <= trial.allowed <= trial.budget.attempts
    if result.verdict == Generated(Acceptance.ACCEPTED):
        assert result.text == TEXT
        assert "good" in trial.kinds[:calls]
    if isinstance(result.verdict, Unavailable):
        assert result.text == ""


@pytest.mark.parametrize("seed", range(16))
async def test_no_script_of_failures_makes_more_calls_than_the_budget_or_an_answer_of_nothing(
    redis_url: str, seed: int
) -> None:
    calls, trial, result, _ = await tried(redis_url, seed)
    assert calls <= trial.budget.attempts
    holds(calls, trial, result)


@pytest.mark.soak
async def test_no_script_of_failures_takes_longer_than_the_deadline_and_50_ms(
    redis_url: str,
) -> None:
    for seed in range(1_000, 1_400):
        calls, trial, result, late = await tried(redis_url, seed)
        holds(calls, trial, result)
        assert late <= GRANTED, (seed, trial)


async def test_a_budget_of_time_leaves_no_attempt_that_cannot_end(desk: Desk) -> None:
    desk.script(replies.refused(503), replies.refused(503))
    made = desk.pipeline(policy=policy(9, pauses=Pauses(first=20, most=20)))
    deadlines.enter(Deadline.after(5))
    result = await made.answer(TASK)
    assert result.verdict == Unavailable(UnavailableReason.MODEL_UNAVAILABLE)
    assert len(desk.provider.arrivals) == 1
    assert "retry:wait" not in desk.events


def test_a_ledger_counts_estimates_until_it_is_told_better() -> None:
    estimate = Estimate(INPUT, OUTPUT, cost=0.5)
    ledger = Ledger(Budget(9, tokens=400, cost=2.0), Deadline(time.monotonic() + 60))
    ledger.begin(estimate)
    ledger.begin(estimate)
    assert (ledger.attempts, ledger.tokens, ledger.cost) == (2, 300, 1.0)
    assert not ledger.allows(estimate)
    ledger.report(estimate, Used(40, 12, charged=60, cost=0.1))
    assert (ledger.tokens, ledger.cost) == (210, 0.6)
    assert ledger.allows(estimate)
    ledger.report(estimate, Used(40, 12, charged=52, cost=0.1))
    assert ledger.spent() == Spent(2, 80, 24)


def test_a_ledger_lasts_as_long_as_the_last_who_waits() -> None:
    now = time.monotonic()
    ledger = Ledger(Budget(1), Deadline(now))
    estimate = Estimate(1, 1, 0.0)
    assert not ledger.allows(estimate)
    ledger.lasts_until(Deadline(now + 60))
    ledger.lasts_until(Deadline(now + 30))
    assert ledger.deadline == Deadline(now + 60)
    assert ledger.allows(estimate, wait=50)
    assert not ledger.allows(estimate, wait=60)
