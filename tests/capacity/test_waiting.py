"""Starts that are promised, under a clock of the test's own."""

import pytest
from redis import Redis

from capacity import Limits
from capacity.pool import REQUEST, TOKEN
from tests.capacity import pool
from tests.capacity.pool import LEASE, SECOND, Scripts

GRANTED, TOKENS, IN_FLIGHT, COOLDOWN, WAITING, LOST = [0, 0], 2, [3, -1], 5, 6, [7, -1]
# Ten requests and 100 tokens a second.
LIMITS = Limits(700, 7_000, 4, 500, interactive_reserve=0, request_burst=100, token_burst=1_000)
MINUTE = 60 * SECOND


@pytest.fixture
def scripts(client: Redis) -> Scripts:
    pool.fill(client)
    made = Scripts(client, LIMITS)
    made.reserve("spent", 1_000 * TOKEN)
    made.settle("spent")
    return made


def promise(scripts: Scripts, name: str, tokens: int) -> int:
    """Microseconds until it may begin."""
    code, wait = scripts.reserve(name, tokens * TOKEN, max_wait=MINUTE)
    assert code == WAITING
    return wait


def test_a_promised_start_comes_when_its_tokens_are_refilled(scripts: Scripts) -> None:
    assert promise(scripts, "a", 300) == 3 * SECOND
    assert pool.level(scripts.client).places == 0
    scripts.now += 3 * SECOND - 1
    assert scripts.begin("a") == [WAITING, 1]
    scripts.now += 1
    assert scripts.begin("a") == GRANTED
    assert pool.names(scripts.client) == ["a"]
    assert pool.level(scripts.client)[1:4] == (1, 0, 0)


def test_starts_are_promised_in_order_of_arrival(scripts: Scripts) -> None:
    assert promise(scripts, "large", 500) == 5 * SECOND
    assert promise(scripts, "small", 1) == 501 * SECOND // 100
    assert promise(scripts, "last", 99) == 6 * SECOND


def test_what_is_promised_is_nobody_elses(scripts: Scripts) -> None:
    promise(scripts, "a", 300)
    scripts.now += 3 * SECOND
    assert scripts.reserve("b", TOKEN) == [TOKENS, SECOND // 100]


def test_nothing_is_promised_beyond_the_longest_wait(scripts: Scripts) -> None:
    before = pool.dump(scripts.client)
    code, wait = scripts.reserve("a", 300 * TOKEN, max_wait=3 * SECOND - 1)
    assert (code, wait) == (TOKENS, 3 * SECOND)
    assert pool.dump(scripts.client) == before
    assert scripts.reserve("a", 300 * TOKEN, max_wait=3 * SECOND) == [WAITING, 3 * SECOND]


def test_nothing_is_promised_to_batch(scripts: Scripts) -> None:
    before = pool.dump(scripts.client)
    code, _ = scripts.reserve("a", 300 * TOKEN, batch=True, max_wait=MINUTE)
    assert code == TOKENS
    assert pool.dump(scripts.client) == before


def test_a_promise_asked_for_twice_is_one(scripts: Scripts) -> None:
    promise(scripts, "a", 300)
    before = pool.dump(scripts.client)
    scripts.now += SECOND
    assert promise(scripts, "a", 300) == 2 * SECOND
    assert pool.dump(scripts.client) == before


def test_begun_twice_is_begun_once(scripts: Scripts) -> None:
    scripts.now += promise(scripts, "a", 300)
    scripts.begin("a")
    before = pool.dump(scripts.client)
    assert scripts.begin("a") == GRANTED
    assert pool.dump(scripts.client) == before


def test_a_promise_given_up_returns_everything(scripts: Scripts) -> None:
    before = pool.level(scripts.client)
    promise(scripts, "a", 300)
    assert scripts.settle("a", pool.NEVER_BEGAN)
    assert not scripts.settle("a", pool.NEVER_BEGAN)
    assert pool.level(scripts.client) == before
    assert not scripts.client.exists(pool.WAITING)
    assert scripts.begin("a") == LOST


def test_a_promise_is_not_settled_by_usage(scripts: Scripts) -> None:
    promise(scripts, "a", 300)
    before = pool.dump(scripts.client)
    assert not scripts.settle("a", 5 * TOKEN)
    assert not scripts.settle("a")
    assert pool.dump(scripts.client) == before


def test_a_start_without_a_place_returns_everything(scripts: Scripts) -> None:
    wait = promise(scripts, "a", 300)
    scripts.renew(*((name, False, TOKEN) for name in "wxyz"))
    scripts.now += wait
    assert scripts.begin("a") == IN_FLIGHT
    level = pool.level(scripts.client)
    assert (level.places, level.waiting, level.tokens) == (4, 0, 300 * TOKEN)
    assert not scripts.client.exists(pool.WAITING)


def test_a_start_takes_the_place_of_a_lapsed_lease(scripts: Scripts) -> None:
    wait = promise(scripts, "a", 1_000)
    scripts.renew(*((name, False, TOKEN) for name in "wxyz"))
    scripts.now += wait
    assert scripts.begin("a") == GRANTED
    assert pool.names(scripts.client) == ["a"]


def test_debts_made_meanwhile_are_paid_before_the_start(scripts: Scripts) -> None:
    scripts.renew(("runs", False, TOKEN))
    first, second = promise(scripts, "a", 300), promise(scripts, "b", 100)
    assert (first, second) == (3 * SECOND, 4 * SECOND)
    scripts.settle("runs", 201 * TOKEN)
    scripts.now += first
    assert scripts.begin("a") == [WAITING, 2 * SECOND]
    scripts.now += 2 * SECOND
    assert scripts.begin("a") == GRANTED
    assert scripts.begin("b") == [WAITING, SECOND]


def test_a_dead_processs_promise_lapses_and_returns_everything(scripts: Scripts) -> None:
    wait = promise(scripts, "dead", 300)
    scripts.now += wait + LEASE - 1
    assert scripts.reserve("b", 1_000 * TOKEN) == [TOKENS, 1]
    assert pool.names(scripts.client, pool.WAITING) == ["dead"]
    scripts.now += 1
    assert scripts.begin("dead") == LOST
    assert scripts.reserve("b", 1_000 * TOKEN) == GRANTED
    level = pool.level(scripts.client)
    assert (level.waiting, level.tokens, level.requests) == (0, 0, 99 * REQUEST)
    assert not scripts.client.exists(pool.WAITING)


def test_a_clock_that_goes_back_keeps_the_promise_as_far_away(scripts: Scripts) -> None:
    wait = promise(scripts, "a", 300)
    scripts.now -= 3_600 * SECOND
    assert scripts.begin("a") == [WAITING, wait]
    scripts.now += wait
    assert scripts.begin("a") == GRANTED


def test_a_promise_of_a_lost_pool_is_told_so(scripts: Scripts) -> None:
    wait = promise(scripts, "a", 300)
    scripts.client.flushall()
    scripts.now += wait
    assert scripts.begin("a") == LOST
    scripts.renew()
    assert scripts.begin("a") == LOST


def test_a_cooldown_returns_what_was_promised_and_refuses_its_start(scripts: Scripts) -> None:
    wait = promise(scripts, "a", 300)
    scripts.cool_down(wait + SECOND)
    level = pool.level(scripts.client)
    assert (level.waiting, level.tokens) == (0, 0)
    scripts.now += wait
    assert scripts.begin("a") == [COOLDOWN, SECOND]
    scripts.now += 2 * SECOND
    assert scripts.begin("a") == [COOLDOWN, 0]


def test_a_hundred_promises_start_at_the_rate(scripts: Scripts) -> None:
    starts = [promise(scripts, str(number), 10) for number in range(100)]
    assert starts == [SECOND // 10 * number for number in range(1, 101)]
