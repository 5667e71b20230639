"""A pool as the design says it, in plain Python."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from capacity import Limits
from capacity.pool import REQUEST
from tests.capacity.pool import DELAY, LEASE, NEVER_BEGAN, RAMP, Level


class Attempt(NamedTuple):
    name: str
    batch: bool
    tokens: int  # units

    @property
    def costs(self) -> list[int]:
        """What each bucket is charged: the pool's two, and for batch its own two."""
        return [REQUEST, self.tokens] * (2 if self.batch else 1)


@dataclass
class Model:
    """Times are microseconds; `time` is when anything last changed."""

    limits: Limits
    time: int
    opens: int = field(init=False)
    cool_end: int = 0
    ramp_end: int = 0
    levels: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    running: dict[Attempt, int] = field(default_factory=dict)  # until
    waiting: dict[Attempt, int] = field(default_factory=dict)  # from

    def __post_init__(self) -> None:
        self.opens = self.time + DELAY
        self.places, self.batch_places, *buckets = self.limits.numbers()
        self.sizes, self.rates = buckets[::2], buckets[1::2]

    def see(self) -> Level:
        batch = sum(attempt.batch for attempt in self.running)
        counts = (len(self.running), batch, len(self.waiting))
        return Level(self.time, *counts, self.opens, self.cool_end, self.ramp_end, *self.levels)

    def move_clock(self, now: int) -> None:
        """A clock that went back takes everything dated with it."""
        back = max(0, self.time - now)
        self.time, self.opens = self.time - back, self.opens - back
        self.cool_end, self.ramp_end = self.cool_end - back, self.ramp_end - back
        for dated in (self.running, self.waiting):
            for attempt in dated:
                dated[attempt] -= back

    def reserve(self, attempt: Attempt, now: int, max_wait: int = 0) -> list[int]:
        self.move_clock(now)
        if any(c > size for c, size in zip(attempt.costs, self.sizes, strict=False)):
            return [4, -1]
        if self._runs(attempt, now):
            return [0, 0]
        if self._waits(attempt, now):
            return [6, max(0, self.waiting[attempt] - now)]
        code, wait = self._decide(attempt, now, self._levels_with(self._gone(now), now))
        is_promised = code in {1, 2} and wait <= max_wait and not attempt.batch
        if code and not is_promised:
            return [code, wait]
        self._clear(attempt, now)
        if is_promised:
            self.waiting[attempt] = now + wait
        else:
            self.running[attempt] = now + LEASE
        self._change([-cost for cost in attempt.costs], now)
        return [6, wait] if is_promised else [0, 0]

    def begin(self, attempt: Attempt, now: int) -> list[int]:
        self.move_clock(now)
        if self._runs(attempt, now):
            return [0, 0]
        if not self._waits(attempt, now):
            return [5, max(0, self.cool_end - now)] if now < self.ramp_end else [7, -1]
        start = self.waiting[attempt]
        if now < start:
            return [6, start - now]
        later = [one for one, begins in self.waiting.items() if begins > start]
        wait = self._time_to_pay(later, now)
        if wait:
            return [6, wait]
        if len(self.running) >= self.places:
            self._forget_lapsed(now)
        del self.waiting[attempt]
        if len(self.running) >= self.places:
            self._return(attempt, now)
            return [3, -1]
        self.running[attempt] = now + LEASE
        self._change([], now)
        return [0, 0]

    def settle(self, attempt: Attempt, used: int, now: int) -> bool:
        self.move_clock(now)
        if attempt in self.waiting and attempt not in self.running and used == NEVER_BEGAN:
            del self.waiting[attempt]
            self._return(attempt, now)
            return True
        if not self._runs(attempt, now):
            return False
        del self.running[attempt]
        if used == NEVER_BEGAN:
            self._return(attempt, now)
        else:
            back = 0 if used < 0 else attempt.tokens - used
            self._change([0, back] * (2 if attempt.batch else 1), now)
        return True

    def renew(self, attempts: list[Attempt], now: int) -> int:
        self.move_clock(now)
        unknown = set(attempts) - self.running.keys()
        for attempt in attempts:
            self.running[attempt] = now + LEASE
        if unknown:
            self._change([], now)
        return len(unknown)

    def cool_down(self, microseconds: int, now: int) -> int:
        self.move_clock(now)
        if now + microseconds <= self.cool_end:
            return self.cool_end - now
        for attempt in sorted(self.waiting, key=self.waiting.__getitem__):
            self._return(attempt, now)
        self.waiting.clear()
        self._change([], now)
        self.levels = [min(level, 0) for level in self.levels]
        self.cool_end = now + microseconds
        self.ramp_end = self.cool_end + RAMP
        return microseconds

    def snapshot(self, now: int) -> list[int]:
        self.move_clock(now)
        alive = [one for one, until in self.running.items() if until > now]
        waits = sum(self._waits(one, now) for one in self.waiting)
        times = [max(0, end - now) for end in (self.opens, self.cool_end, self.ramp_end)]
        levels = self._levels_with(self._gone(now), now)
        ramp = self.ramp_end - self.cool_end
        return [len(alive), sum(one.batch for one in alive), waits, *times, ramp, *levels]

    def _runs(self, attempt: Attempt, now: int) -> bool:
        return self.running.get(attempt, 0) > now

    def _waits(self, attempt: Attempt, now: int) -> bool:
        return attempt in self.waiting and self.waiting[attempt] + LEASE > now

    def _gone(self, now: int) -> list[Attempt]:
        return [one for one in self.waiting if not self._waits(one, now)]

    def _clear(self, attempt: Attempt, now: int) -> None:
        """Lapsed reservations are cleared away when they are in the way, not before."""
        full = self._decide(attempt, now, self._levels(now), with_lapsed=True)[0]
        if attempt in self.running or self.waiting or full:
            self._forget_lapsed(now)

    def _forget_lapsed(self, now: int) -> None:
        for gone in self._gone(now):
            del self.waiting[gone]
            self._return(gone, now)
        self.running = {one: until for one, until in self.running.items() if until > now}

    def _decide(
        self, attempt: Attempt, now: int, levels: list[int], *, with_lapsed: bool = False
    ) -> tuple[int, int]:
        """The code, and the longest wait that is known."""
        running = [one for one, end in self.running.items() if with_lapsed or end > now]
        if now < self.cool_end:
            return 5, self.cool_end - now
        short_of_batch = attempt.batch and sum(o.batch for o in running) >= self.batch_places
        if len(running) >= self.places or short_of_batch:
            return 3, -1
        code, longest = 0, 0
        if self.opens > now:
            code, longest = 1, self.opens - now
        for bucket, cost in enumerate(attempt.costs):
            wait = self._wait(cost - levels[bucket], self.rates[bucket], now)
            if wait > longest:
                code, longest = 1 + bucket % 2, wait
        return code, longest

    def _time_to_pay(self, later: list[Attempt], now: int) -> int:
        levels = self._levels(now)
        owed = (
            levels[0] + REQUEST * len(later),
            levels[1] + sum(attempt.tokens for attempt in later),
        )
        return max(self._wait(-o, r, now) for o, r in zip(owed, self.rates, strict=False))

    def _wait(self, units: int, rate: int, now: int) -> int:
        """The first microsecond at which so much was gained, found by halving."""
        if units <= 0:
            return 0
        low, high = 0, 1
        while self._gain(rate, now, now + high) < units:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            if self._gain(rate, now, now + middle) < units:
                low = middle
            else:
                high = middle
        return high

    def _climbed(self, rate: int, after: int) -> int:
        length = self.ramp_end - self.cool_end
        inside = max(0, min(after, length))
        return math.floor(float(rate) * inside * inside / (2 * length) * (1 - 2**-50))

    def _gain(self, rate: int, start: int, end: int) -> int:
        if start >= self.ramp_end:
            return rate * (end - start)
        climbed = self._climbed(rate, end - self.cool_end)
        climbed -= self._climbed(rate, start - self.cool_end)
        in_ramp = max(0, min(end, self.ramp_end) - max(start, self.cool_end))
        return min(climbed, rate * in_ramp) + rate * max(0, end - self.ramp_end)

    def _levels(self, now: int) -> list[int]:
        gained = [self._gain(rate, self.time, now) for rate in self.rates]
        full = zip(self.levels, gained, self.sizes, strict=True)
        return [min(level + gain, size) for level, gain, size in full]

    def _levels_with(self, returned: list[Attempt], now: int) -> list[int]:
        levels = self._levels(now)
        for attempt in returned:
            levels = self._lifted(levels, attempt.costs, now)
        return levels

    def _lifted(self, levels: list[int], units: list[int], now: int) -> list[int]:
        lifted = list(levels)
        for bucket, amount in enumerate(units):
            most = self.sizes[bucket]
            if amount > 0 and now < self.ramp_end:
                most = max(lifted[bucket], 0)
            lifted[bucket] = min(lifted[bucket] + amount, most)
        return lifted

    def _return(self, attempt: Attempt, now: int) -> None:
        self._change(attempt.costs, now)

    def _change(self, by: list[int], now: int) -> None:
        self.levels = self._lifted(self._levels(now), by, now)
        self.time = now
