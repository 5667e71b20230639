"""Nothing that came back from the index is trusted before it was judged without the index."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from chassis.errors import DataViolation
from corpus.fields import Fields
from corpus.points import StoredPassage, from_fields
from corpus.scope import Scope
from services.retrieve.index import Point

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that the caller may read.

    `score` is in the space of the search, `cosine` that of the question's embedding where there is
    one. The vector is empty where nobody asked for it.
    """

    id: str
    passage: StoredPassage
    score: float
    cosine: float | None
    vector: Sequence[float]


def admitted(point: Point, score: float, scope: Scope, cosine: float | None) -> Found:
    """The point as a passage. Raises DataViolation, which is to fail the whole call."""
    passage = readable(point.id, point.fields, scope)
    if not math.isfinite(score):
        raise _violation(point.id, "its score is no number", "SCORE_INVALID")
    return Found(point.id, passage, score, cosine, point.vector)


def readable(identity: str, fields: Fields, scope: Scope) -> StoredPassage:
    """A point of the scope as a passage. Raises DataViolation, which is to fail the whole call."""
    try:
        passage = from_fields(fields)
    except DataViolation as violation:
        _tell(identity, violation.message)
        raise
    if not scope.permits(passage):
        raise _violation(identity, "it is outside the caller's scope", "SCOPE_VIOLATED")
    return passage


def _violation(identity: str, problem: str, reason: str) -> DataViolation:
    message = f"point {identity}: {problem}"
    _tell(identity, message)
    return DataViolation(message, reason=reason, metadata={"point_id": identity})


def _tell(identity: str, problem: str) -> None:
    log.error("payload_violation", point_id=identity, problem=problem)
