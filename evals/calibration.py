"""Which threshold parts questions that can be answered from those that cannot.

Every case has an amount of evidence; at a threshold it is answered exactly if its evidence is not
below. Moving the threshold trades false refusals against false acceptances. It is chosen on the
development split and confirmed on the held-out one, which the choice never saw.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from chassis.errors import InvalidInput

STEPS = 100
PRECISION = 1e-3


@dataclass(frozen=True, slots=True)
class Evidence:
    """One case: whether it is to be answered, and the evidence for doing so.

    `value` is None where nothing was found, which no threshold lets pass.
    """

    id: str
    answerable: bool
    value: float | None


@dataclass(frozen=True, slots=True)
class Rates:
    """At a threshold: the share of the others answered, and of the answerable refused, 0 to 1."""

    threshold: float
    false_acceptance: float
    false_refusal: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A threshold, how it was chosen, and both rates on the two splits."""

    rule: str
    development: Rates
    held_out: Rates


@dataclass(frozen=True, slots=True)
class Sweep:
    """The curve of one setting; `current` is its value now, None where it is not known.

    `sizes` are answerable and other cases of the development split, then of the held-out one.
    """

    setting: str
    space: str
    current: float | None
    curve: Sequence[Rates]
    choices: Sequence[Choice]
    sizes: tuple[int, int, int, int]


def is_held_out(identity: str) -> bool:
    """Which half a case belongs to, by its id alone: other cases never move it."""
    return hashlib.sha256(identity.encode()).digest()[0] % 2 == 1


def sweep(
    setting: str, space: str, evidence: Sequence[Evidence], current: float | None = None
) -> Sweep:
    """Both rates over the range of the evidence.

    Raises InvalidInput where a split has no answerable or no other case.
    """
    development = [one for one in evidence if not is_held_out(one.id)]
    held_out = [one for one in evidence if is_held_out(one.id)]
    sizes = check(evidence)
    curve = [rates(development, threshold) for threshold in _thresholds(development)]
    choices = [
        Choice(rule, chosen, rates(held_out, chosen.threshold))
        for rule, chosen in (
            ("fewest of both", balanced(curve)),
            ("no false acceptance", strict(curve)),
        )
    ]
    if current is not None:
        choices.append(
            Choice("as it is now", rates(development, current), rates(held_out, current))
        )
    return Sweep(setting, space, current, curve, choices, sizes)


def check(evidence: Sequence[Evidence]) -> tuple[int, int, int, int]:
    """How many answerable and other cases each half has.

    Raises InvalidInput where one of the four is none; the values do not matter.
    """
    development = [one for one in evidence if not is_held_out(one.id)]
    held_out = [one for one in evidence if is_held_out(one.id)]
    sizes = (*_sizes(development), *_sizes(held_out))
    if not all(sizes):
        raise InvalidInput(
            f"calibration needs cases of both kinds in both halves; there are {sizes[0]} answerable"
            f" and {sizes[1]} others to choose on, {sizes[2]} and {sizes[3]} to confirm on",
            field="questions",
        )
    return sizes


def rates(evidence: Sequence[Evidence], threshold: float) -> Rates:
    """Both rates at a threshold; `evidence` has cases of both kinds."""
    passed = [one for one in evidence if one.value is not None and one.value >= threshold]
    answerable, others = _sizes(evidence)
    accepted = sum(not one.answerable for one in passed)
    return Rates(threshold, accepted / others, 1 - (len(passed) - accepted) / answerable)


def balanced(curve: Sequence[Rates]) -> Rates:
    """The smallest sum of both rates; of equal ones with fewer false acceptances."""
    return _middle(curve, lambda at: (at.false_acceptance + at.false_refusal, at.false_acceptance))


def strict(curve: Sequence[Rates]) -> Rates:
    """The fewest false acceptances; of equal ones with fewer false refusals."""
    return _middle(curve, lambda at: (at.false_acceptance, at.false_refusal))


async def critical(
    answers: Callable[[float], Awaitable[bool]], low: float = 0.0, high: float = 1.0
) -> float | None:
    """The highest threshold at which a case is still answered, to PRECISION.

    `answers` says whether it is at a threshold, and must not turn true again further up. None
    where it is not answered even at `low`.
    """
    if not await answers(low):
        return None
    if await answers(high):
        return high
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if await answers(middle) else (low, middle)
    return low


def _middle(curve: Sequence[Rates], cost: Callable[[Rates], tuple[float, float]]) -> Rates:
    """The middle of the equally good thresholds, which is the farthest from being worse."""
    least = min(map(cost, curve))
    good = [at for at in curve if cost(at) == least]
    return good[len(good) // 2]


def _thresholds(evidence: Sequence[Evidence]) -> list[float]:
    values = [one.value for one in evidence if one.value is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    step = (high - low) / STEPS or PRECISION
    return [low + number * step for number in range(STEPS + 2)]


def _sizes(evidence: Sequence[Evidence]) -> tuple[int, int]:
    answerable = sum(one.answerable for one in evidence)
    return answerable, len(evidence) - answerable
