"""What a client may send to `POST /v1/embeddings`, and what is wrong with the rest."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from local.models.encoder import DIMENSIONS, MODEL, TOKEN_LIMIT, Purpose

INPUTS_LIMIT = 256

Count = Callable[[Purpose, str], int]


class BadRequest(Exception):
    """The request can never work. `parameter` and `code` are what OpenAI clients look at."""

    def __init__(
        self, message: str, *, parameter: str = "input", code: str = "invalid_value"
    ) -> None:
        super().__init__(message)
        self.message = message
        self.parameter = parameter
        self.code = code


@dataclass(frozen=True, slots=True)
class Text:
    """One input without its prefix."""

    purpose: Purpose
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request in the right shape, its tokens not yet counted."""

    texts: list[Text]
    base64: bool


def parse(body: bytes) -> Wanted:
    """The request in a body. Raises BadRequest."""
    fields = _fields(body)
    _check_model(fields.get("model"))
    _check_dimensions(fields.get("dimensions"))
    texts = [_text(index, item) for index, item in enumerate(_items(fields.get("input")))]
    return Wanted(texts, _is_base64(fields.get("encoding_format", "float")))


def counted(texts: list[Text], count: Count) -> int:
    """Tokens of all texts. Raises BadRequest naming the first that is above the model's limit."""
    total = 0
    for index, item in enumerate(texts):
        tokens = count(item.purpose, item.text)
        if tokens > TOKEN_LIMIT:
            raise BadRequest(
                f"input[{index}] has {tokens} tokens; {MODEL} reads at most {TOKEN_LIMIT}",
                code="context_length_exceeded",
            )
        total += tokens
    return total


def _fields(body: bytes) -> dict[str, object]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON", parameter="", code="invalid_json") from None
    if not isinstance(fields, dict):
        raise BadRequest("the body is not a JSON object", parameter="", code="invalid_json")
    return fields


def _check_model(model: object) -> None:
    if model != MODEL:
        raise BadRequest(
            f"this server has one model, {MODEL}", parameter="model", code="model_not_found"
        )


def _check_dimensions(dimensions: object) -> None:
    if dimensions not in {None, DIMENSIONS}:
        raise BadRequest(
            f"vectors of {MODEL} have {DIMENSIONS} dimensions, no others", parameter="dimensions"
        )


def _is_base64(name: object) -> bool:
    if name not in {"float", "base64"}:
        raise BadRequest("encoding_format is float or base64", parameter="encoding_format")
    return name == "base64"


def _items(value: object) -> list[object]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not 0 < len(items) <= INPUTS_LIMIT:
        raise BadRequest(f"input is a text or a list of 1 to {INPUTS_LIMIT} texts")
    return items


def _text(index: int, item: object) -> Text:
    if not isinstance(item, str):
        raise BadRequest(f"input[{index}] is not a text; token lists are not supported")
    for purpose in Purpose:
        if item.startswith(purpose.value):
            return Text(purpose, _sound(index, item.removeprefix(purpose.value)))
    allowed = " nor ".join(repr(purpose.value) for purpose in Purpose)
    raise BadRequest(f"input[{index}] begins with neither {allowed}: {MODEL} needs one of them")


def _sound(index: int, text: str) -> str:
    # The engine reads C strings: it would embed what stands before the NUL and say nothing.
    if "\0" in text:
        raise BadRequest(f"input[{index}] holds a NUL character")
    if not text.strip():
        raise BadRequest(f"input[{index}] is empty after its prefix")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"input[{index}] holds half a surrogate pair") from None
    return text
