"""Whether what was taken keeps within what was granted, for every window there is.

    for every s <= t:  charges less refunds in [s, t] <= burst + rate (t - s)

With N(t) the charges less refunds up to t, that is N(t) - rate t never rising more than `burst`
above its own earlier values, which one pass over the events decides.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """At `at` microseconds so much was taken, or given back where it is negative."""

    at: int
    amount: float


def excess(changes: Iterable[Change], burst: float, rate: float) -> float:
    """The most that any window holds above its bound; negative where all stay below.

    `rate` is an amount a microsecond.
    """
    worst, taken, lowest = -burst, 0.0, float("inf")
    for change in sorted(changes, key=lambda change: change.at):
        lowest = min(lowest, taken - rate * change.at)
        taken += change.amount
        lowest = min(lowest, taken - rate * change.at)
        worst = max(worst, taken - rate * change.at - lowest - burst)
    return worst


def most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """Of spans (from, to); one that ends when another begins is over."""
    steps = sorted(step for begin, end in spans for step in ((begin, 1), (max(end, begin + 1), -1)))
    level = most = 0
    for _, step in steps:
        level += step
        most = max(most, level)
    return most


def most_within(changes: Iterable[Change], window: int) -> float:
    """The most that any window of so many microseconds, its ends included once, holds."""
    ordered = sorted(changes, key=lambda change: change.at)
    first, held, most = 0, 0.0, 0.0
    for change in ordered:
        held += change.amount
        while ordered[first].at <= change.at - window:
            held -= ordered[first].amount
            first += 1
        most = max(most, held)
    return most


def used(changes: Iterable[Change], burst: float, rate: float, least: float) -> float:
    """Share of the refill that was taken, from when a full bucket first held at most `least`.

    Ends with the last change; 0 for a bucket that was never so empty.
    """
    level, last, begin, there, taken = burst, 0, None, 0.0, 0.0
    for change in sorted(changes, key=lambda change: change.at):
        level = min(burst, level + rate * (change.at - last)) - change.amount
        last = change.at
        if begin is not None:
            taken += change.amount
        elif level <= least:
            begin, there = last, level
    return taken / (there + rate * (last - begin)) if begin is not None and last > begin else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """0 without any values."""
    ordered = sorted(values) or [0.0]
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
