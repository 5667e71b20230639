"""Nothing that came back from the index is trusted before it was judged without the index."""

import math
from dataclasses import dataclass

import structlog

from chassis.errors import DataViolation
from corpus.points import StoredPassage, from_payload
from corpus.scope import Scope
from services.retrieve.index import Hit

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that the caller may read."""

    id: str
    passage: StoredPassage
    score: float


def admitted(hit: Hit, scope: Scope) -> Found:
    """The hit as a passage. Raises DataViolation, which is to fail the whole call."""
    try:
        return _judged(hit, scope)
    except DataViolation as violation:
        log.error("payload_violation", point_id=hit.id, problem=violation.message)  # noqa: TRY400
        raise


def _judged(hit: Hit, scope: Scope) -> Found:
    passage = from_payload(hit.id, hit.payload)
    if not scope.permits(passage):
        raise DataViolation(
            f"point {hit.id}: it is outside the caller's scope",
            reason="SCOPE_VIOLATED",
            metadata={"point_id": hit.id},
        )
    if not math.isfinite(hit.score):
        raise DataViolation(
            f"point {hit.id}: its score is no number",
            reason="SCORE_INVALID",
            metadata={"point_id": hit.id},
        )
    return Found(hit.id, passage, hit.score)
