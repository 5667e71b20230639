"""How a question can end in this stage: a mode with the reasons that it can have, and no other."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Acceptance(Enum):
    ACCEPTED = "it passed every check"
    REVIEW_REQUIRED = "a person has to look at it first"


class ExtractiveReason(Enum):
    NONE = "the profile has no model"
    MODEL_UNAVAILABLE = "the model could not be asked"
    CAPACITY = "the allowance is used up"
    INVALID_OUTPUT = "the model broke the answer contract"
    DEADLINE = "the time was over"


class PreviousReason(Enum):
    MODEL_UNAVAILABLE = "the model could not be asked"
    CAPACITY = "the allowance is used up"


class AbstainedReason(Enum):
    NOTHING_FOUND = "there were no sources"
    EVIDENCE_INSUFFICIENT = "the sources do not carry an answer"


class UnavailableReason(Enum):
    MODEL_UNAVAILABLE = "the model could not be asked"
    CAPACITY = "the allowance is used up"
    INVALID_OUTPUT = "the model broke the answer contract"
    REFUSED = "the model or its filter refused"
    DEADLINE = "the time was over"


@dataclass(frozen=True, slots=True)
class Generated:
    """A model wrote it."""

    acceptance: Acceptance


@dataclass(frozen=True, slots=True)
class Extractive:
    """Verbatim sentences of the sources."""

    reason: ExtractiveReason


@dataclass(frozen=True, slots=True)
class Previous:
    """An earlier answer over the same evidence; `age` is seconds since it was validated."""

    reason: PreviousReason
    acceptance: Acceptance
    age: float


@dataclass(frozen=True, slots=True)
class Abstained:
    reason: AbstainedReason


@dataclass(frozen=True, slots=True)
class Unavailable:
    reason: UnavailableReason


Verdict: TypeAlias = Generated | Extractive | Previous | Abstained | Unavailable
