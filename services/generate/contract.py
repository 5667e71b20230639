"""The answer contract: what a model may reply, and nothing else."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from chassis.errors import DataViolation
from services.generate.marks import Mark, marks

Status = Literal["answered", "insufficient"]
STATUSES: tuple[Status, ...] = get_args(Status)
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": list(STATUSES)},
        "answer": {"type": "string"},
        "source_ids": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["status", "answer", "source_ids"],
    "additionalProperties": False,
}
# Models that are only asked for JSON like to set it as code.
_FENCED = re.compile(r"[ \t\r\n]*```(?:json)?[ \t\r]*\n(.*)```[ \t\r\n]*", re.DOTALL)


class InvalidOutput(DataViolation):
    """The message says which rule was broken, and repeats nothing of the model's text."""

    default_reason = "INVALID_OUTPUT"


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that keeps the contract. `is_sufficient` is False where the model found no answer."""

    is_sufficient: bool
    text: str


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True)

    status: Status
    answer: str
    source_ids: list[str]


def read(reply: str, admitted: frozenset[str]) -> Answer:
    """The answer in a model's reply, its text unchanged. Raises InvalidOutput."""
    parsed = _parse(reply)
    if parsed.status == "insufficient":
        return Answer(is_sufficient=False, text="")
    found = marks(parsed.answer)
    if not _has_text(parsed.answer, found):
        raise InvalidOutput("answered without a text")
    if not parsed.source_ids:
        raise InvalidOutput("answered without sources")
    if not admitted.issuperset(parsed.source_ids):
        raise InvalidOutput("a source that was not admitted")
    cited = {label for mark in found for label in mark.labels}
    if not cited.issubset(parsed.source_ids):
        raise InvalidOutput("a mark that is not among the sources")
    return Answer(is_sufficient=True, text=parsed.answer)


def _has_text(answer: str, found: Sequence[Mark]) -> bool:
    """Whether anybody can read something in it besides its marks."""
    ends = [0, *(mark.span.end for mark in found)]
    starts = [*(mark.span.start for mark in found), len(answer)]
    between = zip(ends, starts, strict=True)
    return any(sign.isalnum() for end, start in between for sign in answer[end:start])


def _parse(reply: str) -> _Reply:
    fenced = _FENCED.fullmatch(reply)
    text = fenced[1] if fenced else reply
    try:
        parsed = _Reply.model_validate_json(text)
    except ValidationError as error:
        fields = {str(part) for item in error.errors() for part in item["loc"][:1]}
        raise InvalidOutput(
            f"not the agreed JSON: {', '.join(sorted(fields)) or 'syntax'}"
        ) from error
    except UnicodeEncodeError as error:
        raise InvalidOutput("not the agreed JSON: half a character") from error
    json.loads(text, object_pairs_hook=_once, parse_int=str, parse_float=str)
    return parsed


def _once(fields: list[tuple[str, object]]) -> None:
    if len(dict(fields)) < len(fields):
        raise InvalidOutput("not the agreed JSON: a field twice")
