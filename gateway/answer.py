"""What the stages hand to each other, and the answer that comes of it.

Passages and sources are type variables: the gateway hands them on unread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from gateway.outcome import Outcome


class Labelled(Protocol):
    """All that the gateway's own rules know of a source."""

    @property
    def label(self) -> str: ...


P = TypeVar("P")  # a passage
S = TypeVar("S", bound=Labelled)  # a source


@dataclass(frozen=True, slots=True)
class Found(Generic[P]):
    """What retrieve found, best first."""

    passages: Sequence[P]
    score_space: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message for the model. The role is the contract's number."""

    role: int
    content: str


@dataclass(frozen=True, slots=True)
class Prompt(Generic[S]):
    """What the model will see. Without sources there is nothing to ask it."""

    messages: Sequence[Message]
    sources: Sequence[S]
    input_tokens: int
    instructions_version: str
    score_space: str


@dataclass(frozen=True, slots=True)
class Citation:
    """One mark: characters `start` to `end` of the text, and the share the source carries."""

    label: str
    start: int
    end: int
    support: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent. Tokens are None when the provider did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    attempts: int = 0
    model: str = ""


class SwitchReason(StrEnum):
    """Why another candidate than the first was asked."""

    UNAVAILABLE = "UNAVAILABLE"
    CAPACITY = "CAPACITY"
    TIMEOUT = "TIMEOUT"
    INVALID_OUTPUT = "INVALID_OUTPUT"


@dataclass(frozen=True, slots=True)
class Provenance:
    """How an answer came about.

    `candidate` is the configured one that served, empty when none was asked, `cached_age` the
    seconds since an answer was stored that comes from the cache.
    """

    candidate: str = ""
    switch_reason: SwitchReason | None = None
    schema_constrained: bool = False
    repaired: bool = False
    cached_age: float | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What generate made of a prompt, or the outcome that stands in for it."""

    outcome: Outcome
    text: str = ""
    citations: Sequence[Citation] = ()
    usage: Usage = field(default_factory=Usage)
    provenance: Provenance = field(default_factory=Provenance)


@dataclass(frozen=True, slots=True)
class Answer(Generic[S]):
    """The answer, or plainly why there is none. Times in seconds; `timings` by stage, in order."""

    answer_id: str
    written: Written
    sources: Sequence[S]
    timings: Mapping[str, float]
    elapsed: float
    instructions_version: str
    score_space: str
    epoch: int
