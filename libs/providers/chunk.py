"""What one event of a streamed answer says, checked."""

import json
from collections.abc import Mapping

import structlog
from pydantic import BaseModel, Field, ValidationError

from providers import classify
from providers.attempt import LARGEST_USAGE
from providers.failures import InvalidReply

log = structlog.get_logger()


class Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    delta: Delta | None = None
    finish_reason: str | None = None


class Chunk(BaseModel):
    choices: list[Choice] | None = None
    model: str | None = None
    usage: object = None


class Usage(BaseModel):
    """Every call reads something: a report of nothing is none."""

    prompt_tokens: int = Field(ge=1, le=LARGEST_USAGE)
    completion_tokens: int = Field(ge=0, le=LARGEST_USAGE)
    total_tokens: int | None = Field(None, ge=0, le=LARGEST_USAGE)

    @property
    def charged(self) -> int:
        """Some count what a model thinks in the total alone."""
        return max(self.prompt_tokens + self.completion_tokens, self.total_tokens or 0)


def read(event: str, pool: str) -> Chunk:
    """Raises what an error event stands for, InvalidReply, and what `json.loads` raises.

    Some have no `error` for it, but no choices either, where an empty list of them carries usage or
    filter results.
    """
    # By Python's own parser: others refuse half a pair of escaped surrogates.
    received = json.loads(event)
    if isinstance(received, Mapping) and received.get("error"):
        raise classify.told(received["error"], pool)
    try:
        chunk = Chunk.model_validate(received)
    except ValidationError as error:
        log.warning("answer_chunk_invalid", problems=error.error_count())
        raise InvalidReply("the model's answer is not what the protocol allows") from error
    if chunk.choices is None and chunk.usage is None:
        raise classify.told(received, pool)
    return chunk


def usage(reported: object) -> Usage | None:
    """None for what is no report of a call's tokens."""
    try:
        return Usage.model_validate(reported)
    except ValidationError:
        return None
