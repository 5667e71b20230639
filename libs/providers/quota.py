"""What the provider says about its own count, told as metrics.

    sluice.provider.requests.remaining, sluice.provider.tokens.remaining
        what its headers say is left
    sluice.provider.input_tokens.difference
        how far the input tokens that the provider reports are from ours, and whether they are
        `more`, `less` or the `same`: a histogram takes no negative numbers

All carry the pool's name.
"""

from collections.abc import Mapping

from opentelemetry import metrics

KINDS = ("requests", "tokens")
LARGEST = 10**12  # a header above it is no count

_meter = metrics.get_meter("sluice.providers")
_remaining = {
    "requests": _meter.create_gauge(
        "sluice.provider.requests.remaining",
        "{request}",
        "requests that the provider says are left",
    ),
    "tokens": _meter.create_gauge(
        "sluice.provider.tokens.remaining", "{token}", "tokens that the provider says are left"
    ),
}
_difference = _meter.create_histogram(
    "sluice.provider.input_tokens.difference",
    "{token}",
    "how far input tokens reported by the provider are from those counted before the call",
    explicit_bucket_boundaries_advisory=(0, 1, 3, 10, 30, 100, 300, 1_000, 3_000),
)


def left(headers: Mapping[str, str], kind: str) -> int | None:
    """What is left of one of KINDS; None where the provider does not say, or has no such limit.

    Unlimited is written as -1, or as 0 with a limit of 0 or none.
    """
    remaining = _count(headers.get(f"x-ratelimit-remaining-{kind}"))
    if remaining == 0 and not _count(headers.get(f"x-ratelimit-limit-{kind}")):
        return None
    return remaining


def observe(headers: Mapping[str, str], pool: str) -> None:
    for kind, gauge in _remaining.items():
        remaining = left(headers, kind)
        if remaining is not None:
            gauge.set(remaining, {"pool": pool})


def compare(reported: int, counted: int, pool: str) -> None:
    """Both are input tokens of one call."""
    difference = reported - counted
    reports = "more" if difference > 0 else "less" if difference else "same"
    _difference.record(abs(difference), {"pool": pool, "reported": reports})


def _count(value: str | None) -> int | None:
    text = (value or "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(LARGEST)):
        return None
    return int(text)
