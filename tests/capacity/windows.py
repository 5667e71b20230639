"""What happened in any window, from events known to lie between two moments each."""

from collections.abc import Iterable
from itertools import accumulate

from tests.capacity.attempts import Event

STARTS = 150  # windows are tried from about so many starts


def excess(events: Iterable[Event], burst: float, rate: float, kind: str = "charge") -> float:
    """The most that was taken in any window above burst + rate x its length; time is in seconds.

    When the server decided is known to lie between asking and answer. A charge counts only if both
    lie in the window, a refund already if one does.
    """
    events = list(events)
    charges = sorted((e for e in events if e[0] == kind), key=lambda e: e[4])
    refunds = [e for e in events if e[0] == "refund" and kind == "charge"]
    worst = -burst
    for _, _, _, start, _ in charges[:: max(1, len(charges) // STARTS)]:
        inside = [(e[4], e[2]) for e in charges if e[3] >= start]
        inside += [(max(e[3], start), -e[2]) for e in refunds if e[4] >= start]
        inside.sort()
        taken = accumulate(amount for _, amount in inside)
        over = (t - rate * (end - start) for t, (end, _) in zip(taken, inside, strict=True))
        worst = max(worst, *(value - burst for value in over))
    return worst


def most_at_once(events: Iterable[Event]) -> int:
    changes = [
        change
        for kind, _, _, begun, ended in events
        if kind == "place"
        for change in ((begun, 1), (ended, -1))
    ]
    return max(accumulate(step for _, step in sorted(changes)))


def amount(events: Iterable[Event], kind: str) -> int:
    return sum(event[2] for event in events if event[0] == kind)


def share_used(events: Iterable[Event], burst: float, rate: float) -> float:
    """Of what was there from the first asking to the last grant, for tokens."""
    events = list(events)
    charges = [event for event in events if event[0] == "charge"]
    length = max(e[4] for e in charges) - min(e[3] for e in charges)
    return (amount(events, "charge") - amount(events, "refund")) / (burst + rate * length)
