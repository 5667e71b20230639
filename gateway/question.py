"""What a caller may ask: a question, filters that narrow, a locale. Nothing else."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from chassis.errors import InvalidInput

QUESTION_CHARACTERS = 4_000
FILTER_VALUES = 100
FILTER_VALUE_CHARACTERS = 256

# No question is written with these, and engines that read C strings end at the first NUL.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}")


class PublicationState(StrEnum):
    DRAFT = "draft"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Filters:
    """Each list narrows the search to its values; an empty one does not narrow."""

    document_types: tuple[str, ...] = ()
    document_ids: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    publication_states: tuple[PublicationState, ...] = ()

    def __post_init__(self) -> None:
        for name in ("document_types", "document_ids", "areas"):
            _check_values(f"filters.{name}", getattr(self, name))
        _check_number("filters.publication_states", self.publication_states)


@dataclass(frozen=True, slots=True)
class Question:
    """A question whose white space is normalised. Raises InvalidInput that names the field."""

    text: str
    filters: Filters = field(default_factory=Filters)
    locale: str = ""

    def __post_init__(self) -> None:
        if _CONTROL.search(self.text):
            raise InvalidInput("the question holds a control character", field="question")
        object.__setattr__(self, "text", " ".join(self.text.split()))
        if not self.text:
            raise InvalidInput("the question is empty", field="question")
        if len(self.text) > QUESTION_CHARACTERS:
            raise InvalidInput(
                f"the question has {len(self.text):,} characters; at most"
                f" {QUESTION_CHARACTERS:,} are allowed",
                field="question",
            )
        _check_unicode("question", self.text)
        if self.locale and not LOCALE.fullmatch(self.locale):
            raise InvalidInput("the locale is no language tag such as en or pt-BR", field="locale")


def _check_values(name: str, values: tuple[str, ...]) -> None:
    _check_number(name, values)
    for position, value in enumerate(values):
        where = f"{name}[{position}]"
        if not 0 < len(value) <= FILTER_VALUE_CHARACTERS:
            raise InvalidInput(
                f"a filter value has 1 to {FILTER_VALUE_CHARACTERS} characters", field=where
            )
        _check_unicode(where, value)


def _check_number(name: str, values: Iterable[str]) -> None:
    if len(tuple(values)) > FILTER_VALUES:
        raise InvalidInput(f"a filter has at most {FILTER_VALUES} values", field=name)


def _check_unicode(name: str, text: str) -> None:
    # A lone surrogate gets through JSON and fails only when it is put on the wire.
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the text is not valid UTF-8", field=name) from None
