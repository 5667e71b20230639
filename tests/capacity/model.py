"""A pool as the design says it, in plain Python."""

from dataclasses import dataclass, field
from typing import NamedTuple

from capacity import Limits
from capacity.pool import REQUEST
from tests.capacity.pool import DELAY, LEASE, Level


class Attempt(NamedTuple):
    name: str
    batch: bool
    tokens: int  # units

    @property
    def costs(self) -> list[int]:
        """What each bucket is charged: the pool's two, and for batch its own two."""
        return [REQUEST, self.tokens] * (2 if self.batch else 1)


@dataclass
class Lease:
    attempt: Attempt
    expiry: int


@dataclass
class Model:
    """Times are microseconds; `time` is when anything last changed."""

    limits: Limits
    time: int
    opens: int = field(init=False)
    levels: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    leases: dict[str, Lease] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.opens = self.time + DELAY
        self.places, self.batch_places, *buckets = self.limits.numbers()
        self.sizes, self.rates = buckets[::2], buckets[1::2]

    def see(self) -> Level:
        batch = sum(lease.attempt.batch for lease in self.leases.values())
        return Level(self.time, len(self.leases), batch, *self.levels)

    def move_clock(self, now: int) -> None:
        """A clock that went back takes everything dated with it."""
        back = max(0, self.time - now)
        self.time -= back
        self.opens -= back
        for lease in self.leases.values():
            lease.expiry -= back

    def reserve(self, attempt: Attempt, now: int) -> list[int]:
        self.move_clock(now)
        if any(c > size for c, size in zip(attempt.costs, self.sizes, strict=False)):
            return [4, -1]
        if self._runs(attempt.name, now):
            return [0, 0]
        if not self._has_place(attempt, now):
            return [3, -1]
        code, wait = self._wait(attempt, now)
        if wait > 0:
            return [code, wait]
        # Lapsed leases are cleared away when they are in the way, not before.
        if attempt.name in self.leases or not self._has_place(attempt, 0):
            self.leases = {name: one for name, one in self.leases.items() if one.expiry > now}
        self.leases[attempt.name] = Lease(attempt, now + LEASE)
        self._change([-cost for cost in attempt.costs], now)
        return [0, 0]

    def settle(self, name: str, used: int, now: int, *, begun: bool) -> bool:
        self.move_clock(now)
        if not self._runs(name, now):
            return False
        attempt = self.leases.pop(name).attempt
        kept = [REQUEST if begun else 0, attempt.tokens if used < 0 else used] * 2
        self._change([c - k for c, k in zip(attempt.costs, kept, strict=False)], now)
        return True

    def renew(self, attempts: list[Attempt], now: int) -> int:
        self.move_clock(now)
        unknown = {one.name for one in attempts} - self.leases.keys()
        for one in attempts:
            held = self.leases.get(one.name, Lease(one, 0))
            self.leases[one.name] = Lease(held.attempt, now + LEASE)
        if unknown:
            self._change([], now)
        return len(unknown)

    def _runs(self, name: str, now: int) -> bool:
        return name in self.leases and self.leases[name].expiry > now

    def _has_place(self, attempt: Attempt, now: int) -> bool:
        alive = [lease.attempt.batch for lease in self.leases.values() if lease.expiry > now]
        short_of_batch = attempt.batch and sum(alive) >= self.batch_places
        return len(alive) < self.places and not short_of_batch

    def _levels(self, now: int) -> list[int]:
        gained = [rate * (now - self.time) for rate in self.rates]
        full = zip(self.levels, gained, self.sizes, strict=True)
        return [min(level + gain, size) for level, gain, size in full]

    def _wait(self, attempt: Attempt, now: int) -> tuple[int, int]:
        """The longest wait and its reason: 1 for requests or a closed pool, 2 for tokens."""
        code, longest = 1, self.opens - now
        short = zip(attempt.costs, self._levels(now), self.rates, strict=False)
        for bucket, (cost, level, rate) in enumerate(short):
            wait = -((level - cost) // rate)
            if wait > longest:
                code, longest = 1 + bucket % 2, wait
        return code, longest

    def _change(self, by: list[int], now: int) -> None:
        self.levels = self._levels(now)
        for bucket, units in enumerate(by):
            self.levels[bucket] = min(self.levels[bucket] + units, self.sizes[bucket])
        self.time = now
