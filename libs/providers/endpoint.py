"""One model at one place: what is known of it before it is called."""

from dataclasses import dataclass, field
from typing import Literal

from capacity import Limits

MILLION = 1_000_000

Credentials = Literal["key", "entra", "none"]
LimitParameter = Literal["max_tokens", "max_completion_tokens"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a model is asked with. None is not sent: reasoning models take no temperature.

    `output_tokens` is the limit of one answer, sent as `limit_parameter`.
    """

    output_tokens: int
    limit_parameter: LimitParameter = "max_tokens"
    temperature: float | None = None
    reasoning_effort: Effort | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens, read and written, in whatever currency budgets are in."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / MILLION


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model that answers.

    `model` is the name or deployment it is asked by, `pool` names the allowance that `limits`
    bound, and `attempt_seconds` the longest that one call may take. With `credentials` of `key`
    the key is sent, with `entra` tokens of the process's own identity. `has_schema` is said of
    those that can be held to a JSON schema; the others are only asked for it.
    """

    id: str
    base_url: str
    model: str
    pool: str
    limits: Limits
    options: ChatOptions
    attempt_seconds: float
    credentials: Credentials = "key"
    key: str = field(default="", repr=False)
    has_schema: bool = False
    price: Price | None = None
