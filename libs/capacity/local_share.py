"""What one process may admit alone while Redis is lost. The arithmetic is that of pool.py."""

from collections.abc import Callable

from capacity.pool import MICROSECONDS, REQUEST, TOKEN, Limits, Workload
from capacity.refusals import CapacityRefused, CapacityUnavailable
from capacity.reservation import NEVER_BEGAN, UNKNOWN, Reservation
from capacity.snapshot import State

REFUSED = "this process's own share is used up for now"


class LocalShare:
    """`clock` is monotonic, in seconds. Without limits there is no share, and nothing is admitted.

    Batch and interactive work are alike here: a share is too small to be divided again.
    """

    def __init__(self, limits: Limits | None, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._places_limit, _, *buckets = limits.numbers() if limits else (0, 0, 0, 0, 0, 0)
        self._sizes, self._rates = buckets[0:4:2], buckets[1:4:2]
        self._levels = [0, 0]
        self._time = 0
        self._cool_end = 0
        self._running: dict[str, Reservation] = {}

    def open(self) -> None:
        """Redis is lost at this moment: the share starts empty, and debts stay."""
        self._refill()
        self._levels = [min(level, 0) for level in self._levels]

    def cool_down(self, seconds: float) -> None:
        self._refill()
        self._cool_end = max(self._cool_end, self._now() + round(seconds * MICROSECONDS))
        self._levels = [min(level, 0) for level in self._levels]

    def reserve(self, reservation: Reservation) -> None:
        """Raises CapacityRefused, or CapacityUnavailable where this share never holds so much."""
        costs = (REQUEST, reservation.tokens * TOKEN)
        if not self.limits or any(c > size for c, size in zip(costs, self._sizes, strict=True)):
            raise CapacityUnavailable("the shared capacity cannot be asked")
        self._refill()
        if self._time < self._cool_end:
            raise self._refusal("COOLDOWN", self._cool_end - self._time)
        if len(self._running) >= self._places_limit:
            raise self._refusal("IN_FLIGHT", None)
        for bucket, reason in enumerate(("REQUESTS", "TOKENS")):
            short = costs[bucket] - self._levels[bucket]
            if short > 0:
                raise self._refusal(reason, -(-short // self._rates[bucket]))
        self._levels = [level - cost for level, cost in zip(self._levels, costs, strict=True)]
        reservation.local = True
        self._running[reservation.id] = reservation

    def settle(self, reservation: Reservation) -> None:
        """A second time changes nothing."""
        if self._running.pop(reservation.id, None) is None:
            return
        self._refill()
        used, estimate = reservation.settlement(), reservation.tokens * TOKEN
        if used == NEVER_BEGAN:
            self._give_back(REQUEST, estimate)
        elif used != UNKNOWN:
            self._give_back(0, estimate - used)

    def state(self) -> State:
        self._refill()
        batch = sum(one.workload is Workload.BATCH for one in self._running.values())
        return State(
            places=len(self._running),
            batch_places=batch,
            cooldown=max(0, self._cool_end - self._time),
            levels=(*self._levels, *self._levels),
        )

    def _now(self) -> int:
        return round(self._clock() * MICROSECONDS)

    def _refill(self) -> None:
        now = self._now()
        elapsed = max(0, now - max(self._time, self._cool_end))
        full = zip(self._levels, self._rates, self._sizes, strict=True)
        self._levels = [min(size, level + elapsed * rate) for level, rate, size in full]
        self._time = now

    def _give_back(self, *units: int) -> None:
        full = zip(self._levels, units, self._sizes, strict=True)
        self._levels = [min(size, level + back) for level, back, size in full]

    @staticmethod
    def _refusal(reason: str, wait: int | None) -> CapacityRefused:
        seconds = None if wait is None else wait / MICROSECONDS
        return CapacityRefused(REFUSED, reason=f"CAPACITY_{reason}", retry_after=seconds)
