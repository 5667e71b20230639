"""Two rankings of the same passages as one, in a space that is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

RANK_CONSTANT = 60  # Cormack, Clarke and Buettcher 2009

# BM25 for each term that is looked for, from which on words count in full. Below it the best match
# holds little of the question: it was put in other words, or in another language.
TELLING = 1.5


class Space(Enum):
    """What a score means. Scores of different spaces cannot be compared."""

    COSINE = "similarity of embeddings, -1 to 1"
    BM25 = "words in common by their rarity, 0 and above"
    RRF = "weighted sum of reciprocal ranks, 0 to 1"
    MIN_MAX = "weighted sum of scores stretched over 0 to 1"


class Ranked(NamedTuple):
    """A passage by its id, and its score in the ranking's space. A search makes hundreds."""

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class Fusion:
    """Into which space, RRF or MIN_MAX, and how much the dense ranking counts at least, 0 to 1."""

    space: Space
    dense_weight: float

    def fused(
        self, dense: Sequence[Ranked], sparse: Sequence[Ranked], asked: float
    ) -> list[Ranked]:
        """All passages of both, best first, equal ones in order of id.

        Both come best first. Who is missing in one gets nothing for it. `asked` is the sum of the
        weights of the terms that the sparse ranking looked for.
        """
        if self.space is Space.RRF:
            return _summed(_by_rank(dense), _by_rank(sparse), self.dense_weight)
        weight = 1 - (1 - self.dense_weight) * _told(sparse, asked)
        return _summed(_stretched(dense), _stretched(sparse), weight)


def in_order(ranking: Sequence[Ranked]) -> list[Ranked]:
    """Best first; an index returns equal scores in any order."""
    return sorted(ranking, key=lambda one: (-one.score, one.id))


def _summed(one: Mapping[str, float], other: Mapping[str, float], weight: float) -> list[Ranked]:
    return in_order(
        [
            Ranked(name, weight * one.get(name, 0.0) + (1 - weight) * other.get(name, 0.0))
            for name in one.keys() | other.keys()
        ]
    )


def _told(sparse: Sequence[Ranked], asked: float) -> float:
    """How far the best match by words holds what is asked, 0 to 1.

    Stretching makes the best match a whole one, however little it shares with the question.
    """
    best = max((one.score for one in sparse), default=0.0)
    return min(1.0, best / (TELLING * asked)) if asked else 0.0


def _by_rank(ranking: Sequence[Ranked]) -> dict[str, float]:
    return {one.id: 1 / (RANK_CONSTANT + place) for place, one in enumerate(in_order(ranking), 1)}


def _stretched(ranking: Sequence[Ranked]) -> dict[str, float]:
    scores = [one.score for one in ranking]
    low, width = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
    return {one.id: (one.score - low) / width if width else 1.0 for one in ranking}
