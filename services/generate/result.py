"""What came of a question, and what it is made of."""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """Every way a question can end here; another combination of mode and reason cannot be said."""

    EXTRACTIVE = "verbatim sentences of the sources"
    ACCEPTED = "a model wrote it and its sources carry it"
    REVIEW_REQUIRED = "a model wrote it and its sources do not clearly carry it"
    NOTHING_FOUND = "there were no sources"
    INSUFFICIENT = "the sources do not carry an answer"
    MODEL_UNAVAILABLE = "the model could not be asked"
    CAPACITY = "the allowance is used up"
    INVALID_OUTPUT = "the model broke the answer contract"
    REFUSED = "the model or its filter refused"
    DEADLINE = "the time was over"


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


@dataclass(frozen=True, slots=True)
class Result:
    """Text and citations are empty unless the verdict is an answer."""

    verdict: Verdict
    text: str = ""
    citations: tuple[Citation, ...] = ()
    spent: Spent = Spent()
