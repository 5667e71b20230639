"""Different passages rather than one thing said many times: maximal marginal relevance.

Carbonell and Goldstein 1998. Relevance and likeness are both stretched over 0 to 1 within the
candidates, so that a degree of diversity means the same under any model and in any score space.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """`vector` is a passage's embedding, of any length but 0."""

    score: float
    vector: Sequence[float]


def spread(candidates: Sequence[Candidate], diversity: float, count: int) -> list[int]:
    """Places of at most `count` candidates in the order chosen.

    `diversity` 0 ranks by score alone; at 1 only being unlike the chosen ones counts. The best one
    is always first.
    """
    if not candidates:
        return []
    relevance = _stretched(np.array([one.score for one in candidates]))
    likeness = _likeness(np.array([one.vector for one in candidates], dtype=np.float64))
    nearest = np.zeros(len(candidates))
    left = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    for _ in range(min(count, len(candidates))):
        worth = (1 - diversity) * relevance - diversity * nearest if chosen else relevance
        best = int(np.argmax(np.where(left, worth, -np.inf)))
        left[best] = False
        nearest = np.maximum(nearest, likeness[best])
        chosen.append(best)
    return chosen


def _likeness(vectors: Floats) -> Floats:
    """Cosines of all pairs, stretched between the least and the most alike pair."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    pairs = cosines[np.triu_indices(len(units), k=1)]
    low, high = (pairs.min(), pairs.max()) if pairs.size else (0.0, 1.0)
    return np.clip((cosines - low) / (high - low), 0, 1) if high > low else np.ones_like(cosines)


def _stretched(scores: Floats) -> Floats:
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
