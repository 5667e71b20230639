"""What the provider saw, held against what it grants."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.parts import windows
from bench.parts.windows import Change
from capacity import Limits
from capacity.pool import MICROSECONDS, REQUEST, TOKEN, WINDOW

WINDOWS = (10, 60)  # seconds


@dataclass(frozen=True, slots=True)
class Arrival:
    """One call, in microseconds of the provider's clock, and the tokens it reported."""

    begin: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one minute grants, and how much of it may come at once."""

    name: str
    minute: float
    burst: float

    @property
    def rate(self) -> float:
        """A microsecond's."""
        return (self.minute - self.burst) / WINDOW

    def within(self, seconds: float) -> float:
        """The most that any window of this length may hold."""
        return round(min(self.minute, self.burst + self.rate * seconds * MICROSECONDS), 1)


def read(log: Path) -> list[Arrival]:
    """Calls still running when the log was read end with its last line."""
    begun: dict[str, tuple[int, int]] = {}
    ended: dict[str, int] = {}
    latest = 0
    for line in log.read_text().splitlines():
        kind, at, number, tokens = line.split()
        latest = int(at)
        if kind == "begin":
            begun[number] = (latest, int(tokens))
        else:
            ended[number] = latest
    return [
        Arrival(begin, ended.get(number, latest + 1), tokens)
        for number, (begin, tokens) in begun.items()
    ]


def allowances(limits: Limits) -> tuple[Allowance, Allowance]:
    """Of requests and tokens."""
    _, _, requests, _, tokens, *_ = limits.numbers()
    return (
        Allowance("requests", limits.requests_per_minute, requests / REQUEST),
        Allowance("tokens", limits.tokens_per_minute, tokens / TOKEN),
    )


def held(arrivals: Sequence[Arrival], limits: Limits) -> dict[str, object]:
    """The most in any window beside what it may hold, and what that is too much."""
    found: dict[str, object] = {}
    over = 0.0
    for allowance in allowances(limits):
        changes = list(_changes(arrivals, allowance.name))
        most: dict[str, list[float]] = {}
        found[allowance.name] = most
        for seconds in WINDOWS:
            held, may = (
                windows.most_within(changes, seconds * MICROSECONDS),
                allowance.within(seconds),
            )
            most[f"{seconds}s"] = [held, may]
            over = max(over, held - may)
    at_once = windows.most_at_once((each.begin, each.end) for each in arrivals)
    found["in_flight"] = [at_once, limits.in_flight]
    return {**found, "over": max(over, at_once - limits.in_flight, 0.0)}


def used(arrivals: Sequence[Arrival], limits: Limits, period: tuple[int, int]) -> dict[str, float]:
    """Share of the full bucket and its refill that arrived within the period, in microseconds."""
    begin, end = period
    return {
        allowance.name: round(
            sum(c.amount for c in _changes(arrivals, allowance.name) if begin <= c.at <= end)
            / (allowance.burst + allowance.rate * (end - begin)),
            4,
        )
        for allowance in allowances(limits)
    }


def _changes(arrivals: Iterable[Arrival], dimension: str) -> Iterable[Change]:
    for each in arrivals:
        yield Change(each.begin, each.tokens if dimension == "tokens" else 1)
