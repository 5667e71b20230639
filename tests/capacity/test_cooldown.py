"""A throttled pool admits nothing, and then little by little, under a clock of the test's own."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from capacity import Limits
from capacity.pool import TOKEN
from tests.capacity import pool
from tests.capacity.pool import RAMP, SECOND, Scripts

GRANTED, TOKENS, COOLDOWN = [0, 0], 2, 5
# 100 tokens a second.
LIMITS = Limits(6_000, 7_000, 50, 500, interactive_reserve=0.5, token_burst=1_000)
RATE = 100


@pytest.fixture
def scripts(client: Redis) -> Scripts:
    pool.fill(client)
    return Scripts(client, LIMITS)


@pytest.mark.parametrize("batch", [False, True])
def test_nothing_is_admitted_before_the_end(scripts: Scripts, batch: bool) -> None:  # noqa: FBT001 - a parameter of the test
    scripts.cool_down(5 * SECOND)
    before = pool.dump(scripts.client)
    assert scripts.reserve("a", TOKEN, batch=batch, max_wait=60 * SECOND) == [
        COOLDOWN,
        5 * SECOND,
    ]
    scripts.now += 5 * SECOND - 1
    assert scripts.reserve("a", TOKEN, batch=batch) == [COOLDOWN, 1]
    assert pool.dump(scripts.client) == before
    scripts.now += 1
    code, _ = scripts.reserve("a", TOKEN, batch=batch)
    assert code not in {0, COOLDOWN}


def test_the_later_end_wins(scripts: Scripts) -> None:
    assert scripts.cool_down(SECOND) == SECOND
    assert scripts.cool_down(60 * SECOND) == 60 * SECOND
    before = pool.dump(scripts.client)
    assert scripts.cool_down(10 * SECOND) == 60 * SECOND
    assert pool.dump(scripts.client) == before


def test_the_refill_climbs_over_the_ramp(scripts: Scripts) -> None:
    scripts.cool_down(SECOND)
    scripts.now += SECOND
    levels = [0]
    for _ in range(15):
        scripts.now += SECOND
        levels.append(scripts.tokens())
    gained = [(after - before) / TOKEN for before, after in pairwise(levels)]
    assert gained[:10] == pytest.approx([RATE * (2 * s + 1) / 20 for s in range(10)], abs=1e-5)
    assert gained[10:] == [RATE] * 5


@pytest.mark.parametrize("tokens", [10, 20, 499, 500, 501, 900])
def test_the_time_told_in_a_ramp_is_exact_to_the_microsecond(scripts: Scripts, tokens: int) -> None:
    scripts.cool_down(SECOND)
    scripts.now += SECOND
    code, wait = scripts.reserve("a", tokens * TOKEN)
    # rate t^2 / 2 D for t <= D
    in_ramp = tokens <= RATE * 10 / 2
    exact = (2 * 10 * tokens / RATE) ** 0.5 if in_ramp else 5 + tokens / RATE
    assert code == TOKENS
    assert wait == pytest.approx(exact * SECOND, abs=2)
    scripts.now += wait - 1
    assert scripts.reserve("a", tokens * TOKEN) == [TOKENS, 1]
    scripts.now += 1
    assert scripts.reserve("a", tokens * TOKEN) == GRANTED


def test_what_is_returned_before_the_ramp_is_over_starts_no_burst(scripts: Scripts) -> None:
    for name in "ab":
        scripts.reserve(name, 500 * TOKEN)
    scripts.cool_down(SECOND)
    scripts.settle("a", 0)
    scripts.now += 2 * SECOND
    level = scripts.tokens()
    scripts.settle("b", 0)
    assert scripts.tokens() == level == pytest.approx(5 * TOKEN, rel=1e-6)


def test_what_is_returned_still_pays_debts(scripts: Scripts) -> None:
    scripts.reserve("a", 500 * TOKEN)
    scripts.reserve("b", 500 * TOKEN)
    scripts.settle("b", 700 * TOKEN)
    scripts.cool_down(SECOND)
    assert scripts.tokens() == -200 * TOKEN
    scripts.settle("a", 400 * TOKEN)
    assert scripts.tokens() == -100 * TOKEN


def test_a_cooldown_of_a_new_pool_holds(client: Redis) -> None:
    scripts = Scripts(client, LIMITS)
    scripts.cool_down(60 * SECOND)
    scripts.now += 59 * SECOND
    assert scripts.reserve("a", TOKEN) == [COOLDOWN, SECOND]


def test_a_clock_that_goes_back_keeps_the_end_as_far_away(scripts: Scripts) -> None:
    scripts.cool_down(5 * SECOND)
    scripts.now -= 3_600 * SECOND
    assert scripts.reserve("a", TOKEN) == [COOLDOWN, 5 * SECOND]


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(st.integers(1, SECOND), min_size=1, max_size=30),
    tokens_per_minute=st.sampled_from([1.5, 90, 6_000, 7e7, 9e8]),
)
def test_small_steps_gain_what_one_step_gains_and_never_more_than_the_ramp(
    client: Redis, steps: list[int], tokens_per_minute: float
) -> None:
    burst = min(1.4e8, max(1.0, tokens_per_minute / 10))
    limit = tokens_per_minute + burst
    scripts = Scripts(client, Limits(6_000, limit, 9, 1, interactive_reserve=0, token_burst=burst))
    size, rate = scripts.limits.numbers()[4:6]
    pool.empty(client, scripts.now)
    scripts.cool_down(1)
    start = scripts.now + 1
    for number, step in enumerate(steps):
        scripts.now += step
        # A new name, so that each step is written.
        scripts.renew((str(number), False, TOKEN))
    after = scripts.now - start
    climbed = Fraction(rate * min(after, RAMP) ** 2, 2 * RAMP)
    most = climbed + rate * max(0, after - RAMP)
    least = most - climbed / 2**49 - 1
    assert min(Fraction(size), least) <= scripts.tokens() <= min(Fraction(size), most)
