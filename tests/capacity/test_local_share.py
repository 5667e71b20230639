"""What a process admits alone, with a clock of the test's own."""

from dataclasses import dataclass

import pytest

from capacity import CapacityRefused, CapacityUnavailable, InvalidLimit, Limits, Reservation
from capacity.local_share import LocalShare
from capacity.pool import REQUEST, TOKEN, WINDOW, Workload

# A share of 60 requests, 6,000 tokens and 2 places.
LIMITS = Limits(6_000, 600_000, 200, 500)
SHARE, PROCESSES = 0.1, 10


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def share(clock: Clock) -> LocalShare:
    made = LocalShare(LIMITS.local(SHARE, PROCESSES), clock)
    made.open()
    return made


def reserve(share: LocalShare, tokens: int = 1) -> Reservation:
    reservation = Reservation(Workload.INTERACTIVE, tokens)
    share.reserve(reservation)
    return reservation


def refusal(share: LocalShare, tokens: int = 1) -> tuple[str, float | None]:
    with pytest.raises(CapacityRefused) as caught:
        reserve(share, tokens)
    return caught.value.reason, caught.value.retry_after


@pytest.mark.parametrize("local_share", [0, 0.05, 0.1, 0.5])
@pytest.mark.parametrize("processes", [1, 3, 8])
def test_the_shared_buckets_and_all_shares_together_hold_the_limit(
    local_share: float, processes: int
) -> None:
    shared, local = LIMITS.shared(local_share), LIMITS.local(local_share, processes)
    limits = [shared] + [local] * processes if local else [shared]
    numbers = [one.numbers() for one in limits]
    assert sum(one[0] for one in numbers) <= LIMITS.in_flight
    assert sum(one[2] + one[3] * WINDOW for one in numbers) <= 6_000 * REQUEST
    assert sum(one[4] + one[5] * WINDOW for one in numbers) <= 600_000 * TOKEN
    assert numbers[0][2] + numbers[0][3] * WINDOW > 5_999 * (1 - local_share) * REQUEST


@pytest.mark.parametrize(
    ("limits", "local_share", "processes"),
    [
        (LIMITS, 0, 1),
        (Limits(160, 600_000, 400, 500), 0.05, 8),  # one request a minute
        (Limits(6_000, 600_000, 159, 500), 0.05, 8),  # less than one place
    ],
)
def test_less_than_one_request_or_one_place_is_no_share(
    limits: Limits, local_share: float, processes: int
) -> None:
    assert limits.local(local_share, processes) is None
    closed = LocalShare(None, Clock())
    with pytest.raises(CapacityUnavailable):
        reserve(closed)


@pytest.mark.parametrize("local_share", [-0.1, 1, float("nan")])
def test_a_share_that_cannot_be_is_refused_by_its_name(local_share: float) -> None:
    with pytest.raises(InvalidLimit, match=r"^local_share: "):
        LIMITS.shared(local_share)


@pytest.mark.parametrize("processes", [0, -1, 1.5])
def test_a_number_of_processes_that_cannot_be_is_refused_by_its_name(processes: int) -> None:
    with pytest.raises(InvalidLimit, match=r"^max_processes: "):
        LIMITS.local(SHARE, processes)


def test_it_starts_empty(share: LocalShare, clock: Clock) -> None:
    reason, wait = refusal(share)
    assert reason == "CAPACITY_REQUESTS"
    assert wait == pytest.approx(60 / 57, abs=1e-5)
    clock.now += wait or 0
    assert reserve(share).local


def test_it_starts_empty_each_time_that_redis_is_lost(share: LocalShare, clock: Clock) -> None:
    clock.now += 3_600
    share.open()
    assert refusal(share)[0] == "CAPACITY_REQUESTS"


def test_a_minute_holds_no_more_than_the_share(share: LocalShare, clock: Clock) -> None:
    clock.now += 3_600
    admitted = 0
    for _ in range(6_000):
        clock.now += 0.01
        try:
            share.settle(reserve(share, 100))
        except CapacityRefused:
            continue
        admitted += 1
    assert 58 <= admitted <= 60


def test_places_are_few_and_come_back(share: LocalShare, clock: Clock) -> None:
    clock.now += 3_600
    held = [reserve(share), reserve(share)]
    assert share.state().places == 2
    assert refusal(share) == ("CAPACITY_IN_FLIGHT", None)
    share.settle(held[0])
    share.settle(held[0])
    assert share.state().places == 1


def test_more_than_it_can_hold_waits_for_redis(share: LocalShare, clock: Clock) -> None:
    clock.now += 3_600
    with pytest.raises(CapacityUnavailable):
        reserve(share, 501)
    reserve(share, 500)


@pytest.mark.parametrize(("used", "left"), [(None, 300), (50, 450), (5_000, -4_500)])
def test_usage_is_settled_in_it(
    share: LocalShare, clock: Clock, used: int | None, left: int
) -> None:
    clock.now += 3_600
    reservation = reserve(share, 200)
    reservation.used = used
    share.settle(reservation)
    assert share.state().levels[1] == left * TOKEN
    share.open()
    assert share.state().levels[1] == min(left, 0) * TOKEN


def test_an_attempt_that_never_began_gets_all_back(share: LocalShare, clock: Clock) -> None:
    clock.now += 3_600
    before = share.state()
    reservation = reserve(share, 200)
    reservation.not_begun()
    share.settle(reservation)
    assert share.state() == before


def test_a_cooldown_holds_in_it(share: LocalShare, clock: Clock) -> None:
    clock.now += 3_600
    share.cool_down(5)
    assert refusal(share) == ("CAPACITY_COOLDOWN", 5)
    clock.now += 5
    assert refusal(share)[0] == "CAPACITY_REQUESTS"
    clock.now += 60
    reserve(share)
