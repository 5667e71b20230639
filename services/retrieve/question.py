"""What may be asked, and what of it is embedded."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from chassis.errors import InvalidInput
from corpus.profile import EmbeddingProfile

CHARACTERS = 4_000

# Embedding endpoints refuse NUL or stop reading there; none of these is written in a question.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class Query:
    """A question as the embedding model gets it, and its length in the model's tokens."""

    text: str
    tokens: int


def normalised(question: str) -> str:
    """NFC, runs of white space as one space.

    Raises InvalidInput for nothing, too much, or control characters.
    """
    if _CONTROL.search(question):
        raise InvalidInput("the question holds a control character", field="question")
    text = " ".join(unicodedata.normalize("NFC", question).split())
    if not text:
        raise InvalidInput("the question is empty", field="question")
    if len(text) > CHARACTERS:
        raise InvalidInput(f"the question has more than {CHARACTERS} characters", field="question")
    return text


def query(question: str, profile: EmbeddingProfile, count: Callable[[str], int]) -> Query:
    """The embedding input of a question.

    Raises InvalidInput also where the model would cut it: an answer to half a question is wrong.
    """
    text = profile.query_input(normalised(question))
    tokens = count(text)
    if tokens > profile.input_limit:
        raise InvalidInput(
            f"the question has {tokens} tokens where {profile.input_limit} can be embedded",
            field="question",
            metadata={"tokens": str(tokens), "limit": str(profile.input_limit)},
        )
    return Query(text, tokens)
