"""What each script does, under a clock of the test's own."""

import pytest
from redis import Redis

from capacity import Limits
from capacity.pool import REQUEST, TOKEN, WINDOW
from tests.capacity import pool
from tests.capacity.pool import DELAY, LEASE, SECOND, Level, Scripts

GRANTED, REQUESTS, TOKENS, IN_FLIGHT, TOO_LARGE = [0, 0], 1, 2, [3, -1], [4, -1]
# One request in 10 seconds; 100 tokens a second.
LIMITS = Limits(8, 7_000, 4, 500, interactive_reserve=0.5, request_burst=2, token_burst=1_000)


def quiet(now: int, places: int, batch_places: int, *levels: int, opens: int = 0) -> Level:
    """Nobody waits, and there was no cooldown."""
    return Level(now, places, batch_places, 0, now + opens if opens else 0, 0, 0, *levels)


@pytest.fixture
def scripts(client: Redis) -> Scripts:
    pool.fill(client)
    return Scripts(client, LIMITS)


def test_a_grant_takes_a_request_the_tokens_and_a_place(scripts: Scripts) -> None:
    assert scripts.reserve("a", 300 * TOKEN) == GRANTED
    assert pool.level(scripts.client) == quiet(
        scripts.now, 1, 0, REQUEST, 700 * TOKEN, REQUEST, 500 * TOKEN
    )
    assert scripts.client.zscore(pool.LEASES, scripts.members["a"]) == scripts.now + LEASE


def test_batch_is_charged_to_both_pairs_of_buckets(scripts: Scripts) -> None:
    assert scripts.reserve("a", 300 * TOKEN, batch=True) == GRANTED
    assert pool.level(scripts.client) == quiet(
        scripts.now, 1, 1, REQUEST, 700 * TOKEN, 0, 200 * TOKEN
    )


def test_a_new_pool_is_empty_and_closed_for_one_renewal_interval(client: Redis) -> None:
    scripts = Scripts(client, Limits(60_000, 600_000, 4, 500))
    assert scripts.reserve("a", TOKEN) == [REQUESTS, DELAY]
    scripts.now += DELAY - 1
    assert scripts.reserve("a", TOKEN) == [REQUESTS, 1]
    scripts.now += 1
    assert scripts.reserve("a", TOKEN) == GRANTED
    assert pool.level(client).requests == 57_000 * REQUEST * DELAY // WINDOW - REQUEST


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("why", ["requests", "tokens", "in_flight", "too_large"])
def test_a_refusal_changes_nothing(scripts: Scripts, why: str, batch: bool) -> None:  # noqa: FBT001 - a parameter of the test
    scripts.reserve("lapsed", TOKEN, batch=True)
    scripts.now += 10 * LEASE
    scripts.reserve("a", (2 if why == "in_flight" else 300) * TOKEN, batch=batch)
    if why == "in_flight":
        scripts.renew(*((name, batch, TOKEN) for name in "bcde"))
    if why == "tokens":
        scripts.settle("a", 100_000 * TOKEN)
        scripts.now += 20 * SECOND
    elif why == "requests" and not batch:
        scripts.reserve("b", TOKEN)
    before = pool.dump(scripts.client)
    scripts.now += SECOND
    amount = (1_001 if why == "too_large" else 300) * TOKEN
    code, wait = scripts.reserve("refused", amount, batch=batch)
    assert code == ["requests", "tokens", "in_flight", "too_large"].index(why) + 1
    assert (wait > 0) is (why in {"requests", "tokens"})
    assert pool.dump(scripts.client) == before


def test_the_time_told_is_exact_to_the_microsecond(scripts: Scripts) -> None:
    scripts.reserve("a", 1_000 * TOKEN)
    code, wait = scripts.reserve("b", 333 * TOKEN)
    assert (code, wait) == (TOKENS, 3_330_000)
    scripts.now += wait - 1
    assert scripts.reserve("b", 333 * TOKEN) == [TOKENS, 1]
    scripts.now += 1
    assert scripts.reserve("b", 333 * TOKEN) == GRANTED


def test_a_time_between_two_microseconds_is_told_as_the_later(scripts: Scripts) -> None:
    scripts.reserve("a", 1_000 * TOKEN)
    code, wait = scripts.reserve("b", 10 * TOKEN + 1)
    assert (code, wait) == (TOKENS, 100_001)
    scripts.now += wait
    assert scripts.reserve("b", 10 * TOKEN + 1) == GRANTED


def test_no_time_is_told_while_places_are_short(scripts: Scripts) -> None:
    scripts.reserve("a", 1_000 * TOKEN)
    assert scripts.reserve("b", TOKEN)[0] == TOKENS
    scripts.renew(*((name, False, TOKEN) for name in "cde"))
    assert scripts.reserve("b", TOKEN) == IN_FLIGHT


@pytest.mark.parametrize(
    ("tokens", "batch", "reply"),
    [
        (1_000, False, GRANTED),
        (1_001, False, TOO_LARGE),
        (500, True, GRANTED),
        (501, True, TOO_LARGE),
        (1_000, True, TOO_LARGE),
    ],
)
def test_more_than_a_class_can_ever_hold_is_final(
    scripts: Scripts,
    tokens: int,
    batch: bool,  # noqa: FBT001 - a parameter of the test
    reply: list[int],
) -> None:
    assert scripts.reserve("a", tokens * TOKEN, batch=batch) == reply


def test_batch_leaves_its_reserve_to_interactive(scripts: Scripts) -> None:
    assert scripts.reserve("a", 100 * TOKEN, batch=True) == GRANTED
    assert scripts.reserve("b", 100 * TOKEN, batch=True)[0] == REQUESTS
    assert scripts.reserve("c", 500 * TOKEN) == GRANTED


def test_batch_alone_reaches_its_share(client: Redis) -> None:
    pool.fill(client)
    scripts = Scripts(client, Limits(6_000, 60_000, 10, 1_000))
    granted = 0
    for number in range(600):
        scripts.now += SECOND // 10
        if scripts.reserve(str(number), 200 * TOKEN, batch=True) == GRANTED:
            scripts.settle(str(number))
            granted += 200
    # 80 % of 57,000 refilled in this minute, and what the bucket held before.
    assert 45_600 + 2_400 - 200 <= granted <= 45_600 + 2_400


def test_a_repeated_reservation_is_one(scripts: Scripts) -> None:
    scripts.reserve("a", 300 * TOKEN)
    before = pool.dump(scripts.client)
    scripts.now += SECOND
    assert scripts.reserve("a", 300 * TOKEN) == GRANTED
    assert pool.dump(scripts.client) == before


@pytest.mark.parametrize(
    ("used", "left"), [(100 * TOKEN, 900), (300 * TOKEN, 700), (-1, 700), (5_000 * TOKEN, -4_000)]
)
def test_settling_charges_what_was_used_or_else_the_estimate(
    scripts: Scripts, used: int, left: int
) -> None:
    scripts.reserve("a", 300 * TOKEN)
    assert scripts.settle("a", used)
    assert pool.level(scripts.client) == quiet(
        scripts.now, 0, 0, REQUEST, left * TOKEN, REQUEST, 500 * TOKEN
    )
    assert scripts.client.keys() == [pool.STATE.encode()]


def test_an_attempt_that_never_began_gets_all_back(scripts: Scripts) -> None:
    scripts.reserve("a", 300 * TOKEN, batch=True)
    assert scripts.settle("a", pool.NEVER_BEGAN)
    full = quiet(scripts.now, 0, 0, 2 * REQUEST, 1_000 * TOKEN, REQUEST, 500 * TOKEN)
    assert pool.level(scripts.client) == full


def test_nothing_is_returned_above_the_size(scripts: Scripts) -> None:
    scripts.reserve("a", 300 * TOKEN, batch=True)
    scripts.now += 9 * SECOND
    assert scripts.settle("a", pool.NEVER_BEGAN)
    full = quiet(scripts.now, 0, 0, 2 * REQUEST, 1_000 * TOKEN, REQUEST, 500 * TOKEN)
    assert pool.level(scripts.client) == full


def test_debt_is_paid_back_before_anything_is_admitted(scripts: Scripts) -> None:
    scripts.reserve("a", 300 * TOKEN)
    scripts.settle("a", 5_000 * TOKEN)
    code, wait = scripts.reserve("b", TOKEN)
    assert (code, wait) == (TOKENS, 4_001 * SECOND // 100)
    scripts.now += wait
    assert scripts.reserve("b", TOKEN) == GRANTED


@pytest.mark.parametrize("seconds", [0, 9, 10, 60])
@pytest.mark.parametrize("name", ["settled", "lapsed", "never seen"])
def test_what_does_not_run_cannot_be_settled(scripts: Scripts, name: str, seconds: int) -> None:
    scripts.reserve("settled", TOKEN)
    scripts.settle("settled", TOKEN)
    scripts.reserve("lapsed", TOKEN)
    scripts.now += LEASE
    scripts.renew(("running", False, TOKEN))
    scripts.now += seconds * SECOND
    before = pool.dump(scripts.client)
    assert not scripts.settle(name, pool.NEVER_BEGAN)
    assert pool.dump(scripts.client) == before


def test_settling_in_a_pool_without_state_makes_none(client: Redis) -> None:
    assert not Scripts(client, LIMITS).settle("a", 0)
    assert client.keys() == []


def test_places_come_back_as_each_lease_lapses(scripts: Scripts) -> None:
    for name in "abcd":
        scripts.renew((name, False, TOKEN))
        scripts.now += SECOND
    scripts.renew(("a", False, TOKEN))
    scripts.now += LEASE - 3 * SECOND - 1
    assert scripts.reserve("e", TOKEN) == IN_FLIGHT
    scripts.now += 1
    assert scripts.reserve("e", TOKEN) == GRANTED
    assert sorted(pool.names(scripts.client)) == ["a", "c", "d", "e"]
    assert pool.level(scripts.client).places == 4


def test_a_lapsed_reservation_may_be_made_anew(scripts: Scripts) -> None:
    scripts.reserve("a", 300 * TOKEN)
    scripts.now += LEASE
    assert scripts.reserve("a", 300 * TOKEN) == GRANTED
    assert pool.level(scripts.client).places == 1
    assert scripts.client.zscore(pool.LEASES, scripts.members["a"]) == scripts.now + LEASE


def test_state_is_bounded_by_the_places(scripts: Scripts) -> None:
    for number in range(100):
        scripts.reserve(f"dead {number}", TOKEN)
        scripts.now += 11 * SECOND
        scripts.reserve(f"alive {number}", TOKEN)
        scripts.settle(f"alive {number}")
        scripts.now += 11 * SECOND
    assert scripts.client.zcard(pool.LEASES) <= LIMITS.in_flight


def test_running_attempts_register_again_after_the_state_is_lost(scripts: Scripts) -> None:
    scripts.reserve("a", 300 * TOKEN, batch=True)
    scripts.client.flushall()
    assert scripts.renew(("a", True, 300 * TOKEN), ("b", False, TOKEN)) == 2
    assert scripts.renew(("a", True, 300 * TOKEN), ("b", False, TOKEN)) == 0
    assert pool.level(scripts.client) == quiet(scripts.now, 2, 1, 0, 0, 0, 0, opens=DELAY)
    assert scripts.reserve("c", TOKEN)[1] >= DELAY


def test_leases_of_a_lost_pool_take_no_places(scripts: Scripts) -> None:
    scripts.renew(*((name, False, TOKEN) for name in "abcd"))
    scripts.client.delete(pool.STATE)
    scripts.reserve("e", TOKEN)
    assert not scripts.client.exists(pool.LEASES)


def test_a_clock_that_goes_back_neither_refills_twice_nor_starves(scripts: Scripts) -> None:
    scripts.reserve("a", 1_000 * TOKEN)
    assert scripts.reserve("b", 500 * TOKEN) == [TOKENS, 5 * SECOND]
    scripts.now -= 3_600 * SECOND
    assert scripts.reserve("b", 500 * TOKEN) == [TOKENS, 5 * SECOND]
    scripts.now += 5 * SECOND
    assert scripts.reserve("b", 500 * TOKEN) == GRANTED
    scripts.now += 5 * SECOND - 1
    assert scripts.settle("b")
    assert not scripts.renew(("a", False, 1_000 * TOKEN))


def test_a_clock_that_goes_back_keeps_leases_and_the_opening_as_they_were(client: Redis) -> None:
    scripts = Scripts(client, Limits(60_000, 600_000, 1, 500))
    scripts.renew(("a", False, TOKEN))
    scripts.now -= 3_600 * SECOND
    assert scripts.reserve("b", TOKEN) == IN_FLIGHT
    assert client.zscore(pool.LEASES, scripts.members["a"]) == scripts.now + LEASE
    scripts.settle("a")
    assert scripts.reserve("b", TOKEN) == [REQUESTS, DELAY]


# A minute's limit, its burst, and for how long it is asked how often.
RATES = [
    pytest.param(8, 2, 600, 20_000, id="0.1 a second"),
    pytest.param(92, 2, 60, 10_000, id="1.5 a second"),
    pytest.param(3_602, 2, 10, 10_000, id="60 a second"),
    pytest.param(60_000_002, 2, 0.005, 10_000, id="a million a second"),
    pytest.param(61_000_000, 1_000_000, 0.005, 10_000, id="a million a second and at once"),
]


@pytest.mark.parametrize(("limit", "burst", "seconds", "polls"), RATES)
def test_fractions_of_a_refill_are_kept(
    client: Redis, limit: int, burst: int, seconds: float, polls: int
) -> None:
    limits = Limits(limit, 1e9, 1_000_000, 1, interactive_reserve=0, request_burst=burst)
    scripts = Scripts(client, limits)
    pool.empty(client, scripts.now)
    start, duration = scripts.now, round(seconds * SECOND)
    with client.pipeline(transaction=False) as pipe:
        for number in range(polls + 1):
            scripts.now = start + number * duration // polls
            pipe.evalsha(*scripts.call("reserve", pool.member(str(number), TOKEN), 0))
        granted = pipe.execute().count(0)
    exact = (limit - burst) * seconds / 60
    assert exact - 1 <= granted <= exact + 1
