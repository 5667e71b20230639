"""How long a throttled caller is asked to wait."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from providers import quota

# A provider that asks for more than this means something else than a rate.
LONGEST = 120.0
SECONDS = {
    "d": 86_400,
    "h": 3_600,
    "m": 60,
    "s": 1,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
}
PART = re.compile(r"(\d+(?:\.\d+)?)(d|h|ms|m|s|us|µs|ns)")


def parse(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, 0 to LONGEST; None where the provider does not say, or not readably.

    Understands retry-after-ms, which is finer and so read first, then Retry-After in seconds or as
    an HTTP date, then the resets of the quotas (`1s`, `6m0s`, `20ms`). A date is compared with the
    provider's own Date; `now`, an aware time, stands in for one that is missing.
    """
    for wait in (
        _scaled(_number(headers.get("retry-after-ms")), 1e-3),
        _number(headers.get("retry-after")),
        _until(headers.get("retry-after"), _moment(headers.get("date")) or now),
        _reset(headers),
    ):
        if wait is not None:
            return min(max(wait, 0.0), LONGEST)
    return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _scaled(number: float | None, factor: float) -> float | None:
    return None if number is None else number * factor


def _until(value: str | None, now: datetime) -> float | None:
    moment = _moment(value)
    return None if moment is None else (moment - now).total_seconds()


def _moment(value: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _reset(headers: Mapping[str, str]) -> float | None:
    """The later reset of those quotas that are used up; of both where neither is said to be."""
    waits = {
        kind: wait
        for kind in quota.KINDS
        if (wait := _duration(headers.get(f"x-ratelimit-reset-{kind}"))) is not None
    }
    spent = [wait for kind, wait in waits.items() if quota.left(headers, kind) == 0]
    return max(spent or waits.values(), default=None)


def _duration(value: str | None) -> float | None:
    text = (value or "").strip()
    parts = PART.findall(text)
    if parts and "".join(amount + unit for amount, unit in parts) == text:
        return sum(float(amount) * SECONDS[unit] for amount, unit in parts)
    return _number(text)
