"""One answer from a chat model, by any endpoint that speaks OpenAI's chat protocol.

The provider is always read as a stream: only a closed stream reliably ends its work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import structlog
from openai import AsyncOpenAI, omit
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.shared_params import ResponseFormatJSONSchema
from pydantic import BaseModel, Field, ValidationError

from capacity import Reservation, SharedBucket, Workload
from providers import quota
from providers.attempt import LARGEST_USAGE, Attempts, connect, estimate
from providers.failures import Incomplete, InvalidReply, ProviderUnavailable, Refused
from providers.reach import reach

log = structlog.get_logger()

LONGEST = 400_000  # characters; more is not an answer but a model that does not end
FILTERED = "content_filter"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a model is asked with. None is not sent: reasoning models take no temperature.

    `output_tokens` is the limit of one answer, sent as `limit_parameter`.
    """

    output_tokens: int
    limit_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: float | None = None
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """`finish_reason` is `stop`, `length` or the provider's own word; `model` is who answered."""

    text: str
    finish_reason: str
    input_tokens: int | None
    output_tokens: int | None
    model: str


class ChatClient:
    """One model at one endpoint; its calls draw on `bucket`."""

    def __init__(  # noqa: PLR0913 - what one model at one endpoint is
        self,
        *,
        base_url: str,
        api_key: str,
        model: str,
        bucket: SharedBucket,
        attempt_timeout: float,
        options: ChatOptions,
        interactive_wait: float = 0.0,
    ) -> None:
        self._client: AsyncOpenAI = connect(base_url, api_key, attempt_timeout)
        self._base_url = base_url
        self._model = model
        self._options = options
        self._attempts = Attempts("answers", bucket, attempt_timeout, interactive_wait)

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        input_tokens: int,
        workload: Workload,
        schema: Mapping[str, object] | None = None,
    ) -> Completion:
        """The whole answer, by one call and one reservation of input and output limit.

        `input_tokens` counts the messages; 0 where nobody counted: then a bounded default stands
        in. `schema` is a JSON schema that the endpoint holds the
        answer to. Raises what `Attempts.one` raises, Refused, Incomplete for a stream that was
        cut, and InvalidReply.
        """
        text = "".join(message.content for message in messages)
        tokens = estimate([input_tokens], [text]) + self._options.output_tokens
        async with self._attempts.one(tokens, workload) as reservation:
            reading = _Reading(reservation, self._model)
            completion = await self._streamed(messages, schema, reading)
        if completion.input_tokens and input_tokens > 0:
            quota.compare(completion.input_tokens, input_tokens, self._attempts.pool)
        return completion

    async def reachable(self) -> None:
        """Spends nothing. Raises ProviderUnavailable when the endpoint takes no connection."""
        await reach(self._base_url)

    async def close(self) -> None:
        await self._client.close()

    async def _streamed(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, object] | None,
        reading: "_Reading",
    ) -> Completion:
        options = self._options
        limit = {options.limit_parameter: options.output_tokens}
        reply = await self._client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=[_parameter(message) for message in messages],
            stream=True,
            stream_options={"include_usage": True},
            max_tokens=limit.get("max_tokens", omit),
            max_completion_tokens=limit.get("max_completion_tokens", omit),
            temperature=omit if options.temperature is None else options.temperature,
            reasoning_effort=options.reasoning_effort or omit,
            response_format=omit if schema is None else _format(schema),
        )
        self._attempts.heard(reply.headers)
        async with reply.parse() as stream:
            async for chunk in stream:
                reading.take(chunk)
        return reading.completion()


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: object = None


class _Usage(BaseModel):
    """Every call reads something: a report of nothing is none."""

    prompt_tokens: int = Field(ge=1, le=LARGEST_USAGE)
    completion_tokens: int = Field(ge=0, le=LARGEST_USAGE)
    total_tokens: int | None = Field(None, ge=0, le=LARGEST_USAGE)

    @property
    def charged(self) -> int:
        """Some count what a model thinks in the total alone."""
        return max(self.prompt_tokens + self.completion_tokens, self.total_tokens or 0)


@dataclass(slots=True)
class _Reading:
    """What came so far."""

    reservation: Reservation
    model: str
    pieces: list[str] = field(default_factory=list)
    characters: int = 0
    finish_reason: str = ""
    refused: bool = False
    usage: _Usage | None = None

    def take(self, received: ChatCompletionChunk) -> None:
        chunk = _checked(received)
        self.model = chunk.model or self.model
        # An error event without an `error` key reaches us as a chunk without choices; a list that
        # is empty carries usage or filter results.
        if chunk.choices is None and chunk.usage is None:
            raise ProviderUnavailable("the model provider failed while it answered")
        for choice in chunk.choices or ():
            self._take_choice(choice)
        if self.finish_reason:
            self._take_usage(chunk.usage)

    def completion(self) -> Completion:
        if self.refused:
            raise Refused("the model refused to answer")
        if not self.finish_reason:
            raise Incomplete("the model's answer was cut off")
        if self.finish_reason == FILTERED:
            raise Refused("the model provider's filter withheld the answer")
        return Completion(
            text=_whole("".join(self.pieces)),
            finish_reason=self.finish_reason,
            input_tokens=self.usage.prompt_tokens if self.usage else None,
            output_tokens=self.usage.completion_tokens if self.usage else None,
            model=self.model,
        )

    def _take_choice(self, choice: _Choice) -> None:
        if choice.delta:
            # A refusal is read on to its end: the usage comes last.
            self.refused = self.refused or bool(choice.delta.refusal)
            self._take_content(choice.delta.content or "")
        self.finish_reason = choice.finish_reason or self.finish_reason

    def _take_content(self, content: str) -> None:
        self.pieces.append(content)
        self.characters += len(content)
        if self.characters > LONGEST:
            raise InvalidReply("the model's answer does not end")

    def _take_usage(self, received: object) -> None:
        """The last report counts. Those before the end are running ones, not what was used."""
        try:
            usage = _Usage.model_validate(received, from_attributes=True)
        except ValidationError:
            return
        self.usage = usage
        self.reservation.report(usage.charged)


def _checked(received: ChatCompletionChunk) -> _Chunk:
    """The client declares types but checks none of them."""
    try:
        return _Chunk.model_validate(received, from_attributes=True)
    except ValidationError as error:
        log.warning("answer_chunk_invalid", problems=error.error_count())
        raise InvalidReply("the model's answer is not what the protocol allows") from error


def _whole(text: str) -> str:
    """Pairs of escaped surrogates that came in two deltas become characters; lone ones cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _parameter(message: ChatMessage) -> ChatCompletionMessageParam:
    if message.role == "system":
        return {"role": "system", "content": message.content}
    return {"role": "user", "content": message.content}


def _format(schema: Mapping[str, object]) -> ResponseFormatJSONSchema:
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)},
    }
