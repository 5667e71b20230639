"""What came of a question, and what it is made of."""

from dataclasses import dataclass
from enum import Enum

from services.generate.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Citation:
    """One sentence and one source that it cites.

    `start` and `end` are code points of the text, marks included; `support` is the share of the
    sentence that the source carries, 0 to 1.
    """

    label: str
    start: int
    end: int
    support: float


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens are None where nobody reported them; `attempts` counts calls to the provider."""

    attempts: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str = ""


class Switch(Enum):
    """Why another candidate than the first was asked."""

    UNAVAILABLE = "the one before could not be reached or failed"
    CAPACITY = "the one before was throttled, or its allowance was used up"
    TIMEOUT = "the one before did not answer in its own time"
    INVALID_OUTPUT = "the one before broke the answer contract"


@dataclass(frozen=True, slots=True)
class Provenance:
    """How an answer came about.

    `candidate` is empty where none was asked; `cached_age` is seconds since it was stored.
    """

    candidate: str = ""
    switch: Switch | None = None
    is_structured: bool = False
    is_repaired: bool = False
    cached_age: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Text and citations are empty unless the verdict is an answer."""

    verdict: Verdict
    text: str = ""
    citations: tuple[Citation, ...] = ()
    spent: Spent = Spent()
    provenance: Provenance = Provenance()
