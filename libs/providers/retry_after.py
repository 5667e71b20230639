"""How long a throttled caller is asked to wait."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# A provider that asks for more than this means something else than a rate.
LONGEST = 3600.0


def parse(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, 0 to LONGEST; None where the provider does not say, or not readably.

    Understands retry-after-ms, which is finer and so read first, and Retry-After in seconds or as
    an HTTP date. `now` is an aware time.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None:
        seconds = _until(value, now)
    return None if seconds is None else _bounded(seconds)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(value: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - now).total_seconds()


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST)
