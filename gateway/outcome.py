"""What can come of a question. Combinations outside the table cannot be built."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    GENERATED = "GENERATED"
    EXTRACTIVE = "EXTRACTIVE"
    PREVIOUS = "PREVIOUS"
    QUEUED = "QUEUED"
    ABSTAINED = "ABSTAINED"
    UNAVAILABLE = "UNAVAILABLE"


class Reason(StrEnum):
    NONE = "NONE"
    MODEL_UNAVAILABLE = "MODEL_UNAVAILABLE"
    CAPACITY = "CAPACITY"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    DEADLINE = "DEADLINE"
    REQUESTED = "REQUESTED"
    NOTHING_FOUND = "NOTHING_FOUND"
    EVIDENCE_INSUFFICIENT = "EVIDENCE_INSUFFICIENT"
    RETRIEVAL_UNAVAILABLE = "RETRIEVAL_UNAVAILABLE"
    REFUSED = "REFUSED"


class Acceptance(StrEnum):
    ACCEPTED = "ACCEPTED"
    REVIEW_REQUIRED = "REVIEW_REQUIRED"


_ANY = frozenset(Acceptance)
_ACCEPTED = frozenset({Acceptance.ACCEPTED})
_NO_CONTENT: frozenset[Acceptance] = frozenset()
_MODEL_DOWN = frozenset({Reason.MODEL_UNAVAILABLE, Reason.CAPACITY})

TABLE: Mapping[Mode, tuple[frozenset[Reason], frozenset[Acceptance]]] = {
    Mode.GENERATED: (frozenset({Reason.NONE}), _ANY),
    Mode.EXTRACTIVE: (
        _MODEL_DOWN | {Reason.NONE, Reason.INVALID_OUTPUT, Reason.DEADLINE},
        _ACCEPTED,
    ),
    Mode.PREVIOUS: (_MODEL_DOWN, _ANY),
    Mode.QUEUED: (_MODEL_DOWN | {Reason.REQUESTED}, _NO_CONTENT),
    Mode.ABSTAINED: (frozenset({Reason.NOTHING_FOUND, Reason.EVIDENCE_INSUFFICIENT}), _NO_CONTENT),
    Mode.UNAVAILABLE: (
        _MODEL_DOWN
        | {Reason.RETRIEVAL_UNAVAILABLE, Reason.INVALID_OUTPUT, Reason.REFUSED, Reason.DEADLINE},
        _NO_CONTENT,
    ),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the table. `age` in seconds belongs to PREVIOUS, `job_id` to QUEUED.

    Raises ValueError for a combination outside the table.
    """

    mode: Mode
    reason: Reason
    acceptance: Acceptance | None = None
    age: float | None = None
    job_id: str = ""

    def __post_init__(self) -> None:
        reasons, acceptances = TABLE[self.mode]
        accepted = self.acceptance in acceptances if acceptances else self.acceptance is None
        aged = (self.age is not None) == (self.mode is Mode.PREVIOUS)
        queued = bool(self.job_id) == (self.mode is Mode.QUEUED)
        if not (self.reason in reasons and accepted and aged and queued):
            raise ValueError(f"no such outcome: {self.mode}, {self.reason}, {self.acceptance}")

    @property
    def has_content(self) -> bool:
        return self.acceptance is not None
