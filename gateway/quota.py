"""How many requests a caller may make, and the whole numbers that are calculated with.

Arithmetic and units are those of the provider's pools (capacity/pool.py): for a limit of L requests
in any minute with a burst of b, a bucket holds b requests and refills L - b in a minute.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from capacity.pool import EXACT, MICROSECONDS, REQUEST, WINDOW
from chassis.errors import Exhausted

MINUTE = 60  # seconds


class AllowanceSpent(Exhausted):
    """The caller has asked too often. `reason` is ALLOWANCE_SUBJECT or ALLOWANCE_TENANT.

    `retry_after` is exact if nobody else on the same allowance asks meanwhile, and None where
    waiting does not help.
    """

    default_reason = "ALLOWANCE_SPENT"


@dataclass(frozen=True, slots=True)
class Quota:
    """`size` in units, `rate` in units a microsecond; `limit` is what any minute may hold."""

    scope: str
    limit: float
    size: int
    rate: int

    @classmethod
    def of(cls, scope: str, limit: float, burst: float) -> "Quota":
        """Raises ValueError for a burst that is no share of the limit, or below one request."""
        exact_limit, exact_burst = Fraction(str(limit)), Fraction(str(burst))
        size = math.floor(exact_burst * REQUEST)
        rate = math.floor((exact_limit - exact_burst) * REQUEST / WINDOW)
        if not REQUEST <= size < EXACT or rate < 1:
            most = EXACT // REQUEST
            raise ValueError(
                f"a burst of {burst:g} must hold one request, stay below the limit of {limit:g} in"
                f" a minute, so that something is refilled, and below {most:,}"
            )
        return cls(scope, limit, size, rate)

    def share(self, processes: int) -> "Quota | None":
        """What each of so many processes may grant alone; None where that is below one request.

        Together they grant no more in any minute than the whole would.
        """
        limit = Fraction(str(self.limit)) / processes
        size = max(REQUEST, self.size // processes)
        rate = math.floor((limit * REQUEST - size) / WINDOW)
        return Quota(self.scope, float(limit), size, rate) if rate >= 1 else None

    def wait(self, level: int) -> int:
        """Microseconds until a bucket at `level` units holds one request; 0 if it does."""
        return max(0, -((level - REQUEST) // self.rate))


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the caller stands with one quota: requests left now, seconds until one more is."""

    scope: str
    limit: float
    left: int
    more_in: float

    @classmethod
    def at(cls, quota: Quota, level: int) -> "Standing":
        left, over = divmod(max(level, 0), REQUEST)
        more_in = 0 if level >= quota.size else -((over - REQUEST) // quota.rate)
        return cls(quota.scope, quota.limit, left, more_in / MICROSECONDS)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one request is within the caller's allowance, and what is left of it.

    `refused_by` is the scope of the quota that refuses, empty when granted.
    """

    standings: tuple[Standing, ...]
    refused_by: str = ""
    retry_after: float | None = None

    def check(self) -> None:
        """Raises AllowanceSpent unless the request was granted."""
        if self.refused_by:
            raise AllowanceSpent(
                f"the {self.refused_by}'s allowance of questions is used up for now",
                reason=f"ALLOWANCE_{self.refused_by.upper()}",
                retry_after=self.retry_after,
            )


def fields(standings: tuple[Standing, ...]) -> dict[str, str]:
    """The header fields of draft-ietf-httpapi-ratelimit-headers, which are structured fields.

    `r` requests are left now, one more than that in `t` seconds; `q` are granted in `w` seconds.
    Empty without standings.
    """
    if not standings:
        return {}
    policy = [f'"{one.scope}";q={math.floor(one.limit)};w={MINUTE}' for one in standings]
    now = [f'"{one.scope}";r={one.left};t={math.ceil(one.more_in)}' for one in standings]
    return {"RateLimit-Policy": ", ".join(policy), "RateLimit": ", ".join(now)}
