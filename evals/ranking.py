"""Measures of one ranking against graded judgments.

A ranking is the grades of what was returned, the best first, 0 for what is not relevant; `k` is at
least 1. An empty ranking scores 0 everywhere. Every value lies between 0 and 1.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from chassis.errors import InvalidInput

T = TypeVar("T", bound=Hashable)


def grades(ranking: Sequence[T], judged: Mapping[T, int], *, complete: bool) -> list[int]:
    """The grade of every identity in the ranking, 0 for one without a judgment.

    Raises InvalidInput for an identity that stands twice, and where the judgments are complete for
    one without a judgment: such a ranking cannot be scored.
    """
    if len(set(ranking)) < len(ranking):
        twice = next(one for at, one in enumerate(ranking) if one in ranking[:at])
        raise InvalidInput(f"{twice!r} was returned twice", field="ranking")
    unjudged = [one for one in ranking if one not in judged]
    if complete and unjudged:
        raise InvalidInput(f"{unjudged[0]!r} was returned and is not judged", field="complete")
    return [judged.get(one, 0) for one in ranking]


def first_of_each(ranking: Iterable[T]) -> list[T]:
    """Each identity once, at its best rank."""
    return list(dict.fromkeys(ranking))


def precision(ranking: Sequence[int], k: int) -> float:
    """Share of the first `k` places that hold something relevant; empty places count as wrong.

    Manning, Raghavan, Schütze: Introduction to Information Retrieval, 2008, section 8.4.
    """
    return _relevant(ranking[:k]) / k


def recall(ranking: Sequence[int], judged: Iterable[int], k: int) -> float:
    """Share of everything relevant that stands in the first `k` places.

    `judged` are the grades of all judgments. Raises ValueError when none is relevant. Source as
    for `precision`.
    """
    relevant = _relevant(judged)
    if not relevant:
        raise ValueError("recall without anything relevant")
    return _relevant(ranking[:k]) / relevant


def hit(ranking: Sequence[int], k: int) -> float:
    """1 when something relevant stands in the first `k` places, else 0."""
    return float(any(ranking[:k]))


def reciprocal_rank(ranking: Sequence[int], k: int) -> float:
    """1 / rank of the first relevant of the first `k` places, 0 without one.

    Voorhees: The TREC-8 Question Answering Track Report, 1999.
    """
    return next((1 / rank for rank, grade in enumerate(ranking[:k], start=1) if grade), 0.0)


def ndcg(ranking: Sequence[int], judged: Iterable[int], k: int) -> float:
    """Discounted cumulated gain of the first `k` places over that of the best possible order.

    The gain of a grade g is 2^g - 1, divided by log2(rank + 1): Burges and others: Learning to Rank
    using Gradient Descent, 2005, after Järvelin and Kekäläinen: Cumulated Gain-Based Evaluation of
    IR Techniques, 2002. `judged` are the grades of all judgments. Raises ValueError when none is
    relevant.
    """
    ideal = _gain(sorted(judged, reverse=True)[:k])
    if not ideal:
        raise ValueError("nDCG without anything relevant")
    return _gain(ranking[:k]) / ideal


def _relevant(found: Iterable[int]) -> int:
    return sum(grade > 0 for grade in found)


def _gain(ranking: Sequence[int]) -> float:
    return math.fsum(
        (2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(ranking, start=1)
    )
