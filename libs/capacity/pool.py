"""The limits of one pool, and the whole numbers that the scripts calculate with.

Time is in microseconds of Redis's own clock. A bucket's level is counted in units so small that
its refill in one microsecond is a whole number: nothing is rounded, small rates never starve.

    one window  W = 60,000,000 microseconds (a minute)
    one token     =    60,000,000 units     (limits in steps of 1 token a minute)
    one request   = 6,000,000,000 units     (limits in steps of 1/100 request a minute)

For a limit of L a minute with a burst of b, and one of either = u units:

    size          = b u
    rate          = (L - b) u / W                            units in a microsecond
    level(t)      = min(size, level(s) + rate (t - s))       for t >= s
    wait(cost)    = ceil((cost - level) / rate)              microseconds

so that what is admitted in any window is at most size + rate W = L. Batch has buckets of
(1 - interactive_reserve) times both; size and rate are rounded down, never up. The scripts' numbers
are doubles, exact up to 2^53: a burst may reach 1,500,000 requests and 150,000,000 tokens.

A promise charges at once what may only begin later: the level falls below zero, and a start `wait`
from now is when it is back at zero, just as if the charge were made then. Who comes later finds the
lower level, so that starts are in order of arrival.

A cooldown ends at C, and a ramp of D microseconds follows it. All levels above zero fall to zero
when it is set; then, with x = t - C,

    gain(C, t)    = 0                                        for x <= 0
                  = floor(rate x^2 / 2D (1 - 2^-50))         for 0 < x <= D
                  = gain(C, C + D) + rate (x - D)            for x > D
    gain(s, t)    = gain(C, t) - gain(C, s), at most rate (t - s)

The factor is more than the doubles' rounding, so that it only makes a gain less; and gains are
differences of one function, so that many small steps lose nothing. Until C + D, what is returned
pays debts and lifts no level above zero: what begins in [C, t] is at most gain(C, t).

For the time without Redis, a share s of every limit is set aside. The shared buckets hold
(1 - s) L, and each of n processes has a bucket of its own of s L / n, which is empty at the moment
of loss. Of P places, floor(s P) are set aside, and each process has floor(s P / n).
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

MICROSECONDS = 1_000_000
WINDOW = 60 * MICROSECONDS
TOKEN = WINDOW
REQUEST = 100 * WINDOW
EXACT = 2**53
DEFAULT_BURST = Fraction(5, 100)


class Workload(StrEnum):
    INTERACTIVE = "interactive"
    BATCH = "batch"


class InvalidLimit(ValueError):
    """`setting` names the limit that cannot hold."""

    def __init__(self, setting: str, complaint: str) -> None:
        super().__init__(f"{setting}: {complaint}")
        self.setting = setting
        self.complaint = complaint


@dataclass(frozen=True, slots=True)
class Limits:
    """What the provider grants one account.

    `in_flight` counts attempts at once, `max_reservation` is the most tokens one attempt asks for,
    `interactive_reserve` the share (0 to 1) that batch cannot take. A burst left out is 5 % of its
    limit, and at least what the largest single reservation of either class needs. Raises
    InvalidLimit.
    """

    requests_per_minute: float
    tokens_per_minute: float
    in_flight: int
    max_reservation: int
    interactive_reserve: float = 0.2
    request_burst: float | None = None
    token_burst: float | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_bursts()
        for name, unit in (("requests", REQUEST), ("tokens", TOKEN)):
            self._check_refill(name, unit)

    def numbers(self) -> tuple[int, ...]:
        """Places, places of batch; size and rate of requests, of tokens, and the same of batch."""
        batch = self._batch_share()
        buckets = [
            number
            for share in (Fraction(1), batch)
            for name, unit in (("requests", REQUEST), ("tokens", TOKEN))
            for number in self._bucket(name, unit, share)
        ]
        # A single place must not shut batch out for good.
        batch_places = max(1, math.floor(self.in_flight * batch)) if batch else 0
        return (self.in_flight, batch_places, *buckets)

    def shared(self, local_share: float) -> "Limits":
        """What is left for the shared buckets. Raises InvalidLimit where that cannot hold."""
        if not 0 <= local_share < 1:
            raise InvalidLimit("local_share", f"must be at least 0 and below 1, not {local_share}")
        rest, aside = 1 - _exact(local_share), math.floor(self.in_flight * _exact(local_share))
        try:
            return replace(
                self,
                requests_per_minute=float(_exact(self.requests_per_minute) * rest),
                tokens_per_minute=float(_exact(self.tokens_per_minute) * rest),
                in_flight=self.in_flight - aside,
            )
        except InvalidLimit as error:
            raise InvalidLimit(
                error.setting, f"{error.complaint}, beside a local share of {local_share:g}"
            ) from error

    def local(self, local_share: float, max_processes: int) -> "Limits | None":
        """What one process may use alone, or None if that is less than one attempt.

        Raises InvalidLimit.
        """
        if not isinstance(max_processes, int) or max_processes < 1:
            raise InvalidLimit(
                "max_processes", f"must be a whole number above 0, not {max_processes}"
            )
        part = _exact(local_share) / max_processes
        tokens = _exact(self.tokens_per_minute) * part
        try:
            return Limits(
                requests_per_minute=float(_exact(self.requests_per_minute) * part),
                tokens_per_minute=float(tokens),
                in_flight=math.floor(self.in_flight * part),
                # Half of a share may come at once, the other half is what refills it.
                max_reservation=min(self.max_reservation, math.floor(tokens / 2)),
                interactive_reserve=0,
            )
        except InvalidLimit:
            return None

    def _batch_share(self) -> Fraction:
        return 1 - _exact(self.interactive_reserve)

    def _limit(self, name: str) -> Fraction:
        return _exact(self.requests_per_minute if name == "requests" else self.tokens_per_minute)

    def _burst(self, name: str) -> Fraction:
        given = self.request_burst if name == "requests" else self.token_burst
        if given is not None:
            return _exact(given)
        largest, unit = (1, REQUEST) if name == "requests" else (self.max_reservation, TOKEN)
        share = min(DEFAULT_BURST * self._limit(name), Fraction(EXACT // unit))
        return max(share, largest / (self._batch_share() or Fraction(1)))

    def _bucket(self, name: str, unit: int, share: Fraction) -> tuple[int, int]:
        burst = self._burst(name)
        rate = (self._limit(name) - burst) * unit / WINDOW
        return math.floor(burst * unit * share), math.floor(rate * share)

    def _check_numbers(self) -> None:
        for setting in (
            "requests_per_minute",
            "tokens_per_minute",
            "in_flight",
            "max_reservation",
            "request_burst",
            "token_burst",
        ):
            value = getattr(self, setting)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InvalidLimit(setting, f"must be a number above 0, not {value}")
        for setting in ("in_flight", "max_reservation"):
            if not isinstance(getattr(self, setting), int):
                raise InvalidLimit(setting, "must be a whole number")
        if not 0 <= self.interactive_reserve <= 1:
            raise InvalidLimit(
                "interactive_reserve", f"must lie between 0 and 1, not {self.interactive_reserve}"
            )

    def _check_bursts(self) -> None:
        least = 1 / (self._batch_share() or 1)
        if self._burst("requests") < least:
            raise InvalidLimit(
                "request_burst",
                f"must hold one request for batch too: at least {float(least):g}"
                f" with interactive_reserve {self.interactive_reserve:g}",
            )
        if self._burst("tokens") < self.max_reservation:
            raise InvalidLimit(
                "token_burst", f"must hold max_reservation, {self.max_reservation} tokens"
            )

    def _check_refill(self, name: str, unit: int) -> None:
        size, _ = self._bucket(name, unit, Fraction(1))
        if size >= EXACT:
            raise InvalidLimit(f"{name[:-1]}_burst", f"must stay below {EXACT // unit:,}")
        for share in {Fraction(1), self._batch_share()} - {Fraction(0)}:
            if self._bucket(name, unit, share)[1] < 1:
                raise InvalidLimit(
                    f"{name}_per_minute",
                    f"must exceed the burst of {float(self._burst(name)):g} {name},"
                    " or nothing is ever refilled",
                )


def _exact(value: float) -> Fraction:
    """The decimal that was written in the settings: 0.2 is a fifth, not its nearest double."""
    return Fraction(str(value))
