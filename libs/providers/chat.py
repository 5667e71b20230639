"""One answer from a chat model, by any endpoint that speaks OpenAI's chat protocol.

The provider is always read as a stream: only a closed stream reliably ends its work.
"""

import codecs
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Self

import httpx2
from openai import AsyncOpenAI, AsyncStream

from capacity import SharedBucket, Workload
from chassis.errors import SluiceError
from providers import chunk, credentials, quota
from providers.attempt import Attempt, Attempts, connect, estimate
from providers.chunk import Choice, Chunk, Usage
from providers.credentials import Tokens
from providers.endpoint import Endpoint
from providers.events import Events
from providers.failures import Incomplete, InvalidReply, Refused
from providers.operation import operation
from providers.reach import reach

LONGEST = 400_000  # characters; more is not an answer but a model that does not end
FILTERED = "content_filter"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """`finish_reason` is `stop`, `length` or the provider's own word; `model` is who answered."""

    text: str
    finish_reason: str
    input_tokens: int | None
    output_tokens: int | None
    model: str


class Reply:
    """One answer while it comes: iterates over its text in deltas, as they come.

    None of them is empty or ends within a character; joined they are the completion's text. What
    is known of `model`, `finish_reason` and `usage` can be read at any time. Iterating raises what
    `Attempt.bounded` raises and InvalidReply.
    """

    def __init__(self, events: Events, attempt: Attempt, model: str) -> None:
        self.model = model
        self.finish_reason = ""
        self.usage: Usage | None = None
        self._events = events
        self._attempt = attempt
        # Pairs of escaped surrogates that come in two deltas become characters; lone ones cannot.
        self._characters = codecs.getincrementaldecoder("utf-16-le")("replace")
        self._pieces: list[str] = []
        self._length = 0
        self._is_refused = False
        self._has_ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while not self._has_ended:
            text = await self._attempt.bounded(self._next)
            if text:
                return text
        raise StopAsyncIteration

    def completion(self) -> Completion:
        """The whole answer, when all of it was read.

        Raises Incomplete for a stream that was cut or not read to its end, and Refused.
        """
        failure = self._failure()
        if failure is not None:
            raise failure
        return Completion(
            text="".join(self._pieces),
            finish_reason=self.finish_reason,
            input_tokens=self.usage.prompt_tokens if self.usage else None,
            output_tokens=self.usage.completion_tokens if self.usage else None,
            model=self.model,
        )

    async def _next(self) -> str:
        event = await self._events.next()
        if event is not None:
            return self._kept(self._take(chunk.read(event, self._attempt.pool)))
        self._has_ended = True
        failure = self._failure()
        if failure is not None:
            await self._attempt.failed(failure)
        return self._kept("", final=True)

    def _take(self, part: Chunk) -> str:
        self.model = part.model or self.model
        text = "".join(map(self._take_choice, part.choices or ()))
        # Reports before the end are running ones, not what was used. The last one counts.
        used = chunk.usage(part.usage) if self.finish_reason else None
        if used:
            self.usage = used
            self._attempt.reservation.report(used.charged)
        return text

    def _take_choice(self, choice: Choice) -> str:
        self.finish_reason = choice.finish_reason or self.finish_reason
        if choice.delta is None:
            return ""
        # A refusal is read on to its end: the usage comes last.
        self._is_refused = self._is_refused or bool(choice.delta.refusal)
        return choice.delta.content or ""

    def _kept(self, content: str, *, final: bool = False) -> str:
        text = self._characters.decode(content.encode("utf-16-le", "surrogatepass"), final)
        self._pieces.append(text)
        self._length += len(text)
        if self._length > LONGEST:
            raise InvalidReply("the model's answer does not end")
        return text

    def _failure(self) -> SluiceError | None:
        if self._is_refused:
            return Refused("the model refused to answer")
        if not (self._has_ended and self.finish_reason):
            return Incomplete("the model's answer was cut off")
        if self.finish_reason == FILTERED:
            return Refused("the model provider's filter withheld the answer")
        return None


class ChatClient:
    """The model at one endpoint; its calls draw on `bucket`, which is the endpoint's pool.

    They prove themselves with `key`. Interactive ones wait `patience` seconds for their turn.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        bucket: SharedBucket,
        *,
        key: str | Tokens,
        patience: float = 0.0,
    ) -> None:
        self._endpoint = endpoint
        self._key = key
        self._client: AsyncOpenAI = connect(endpoint.base_url, key, endpoint.attempt_seconds)
        # Whole, or the client puts it together for every call, in the time that a delta takes.
        self._address = f"{self._client.base_url}chat/completions"
        self._attempts = Attempts(endpoint.pool, bucket, endpoint.attempt_seconds, patience)

    @classmethod
    def of(cls, endpoint: Endpoint, bucket: SharedBucket, *, patience: float = 0.0) -> Self:
        """A client with the endpoint's own credentials.

        Raises Misconfigured where what they need is not installed.
        """
        key = credentials.of(endpoint.credentials, endpoint.key)
        return cls(endpoint, bucket, key=key, patience=patience)

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        input_tokens: int,
        workload: Workload,
        schema: Mapping[str, object] | None = None,
    ) -> Completion:
        """The whole answer, by one call. Raises what `stream` and its Reply raise."""
        async with self.stream(
            messages, input_tokens=input_tokens, workload=workload, schema=schema
        ) as reply:
            async for _ in reply:
                pass
            return reply.completion()

    @asynccontextmanager
    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        input_tokens: int,
        workload: Workload,
        schema: Mapping[str, object] | None = None,
        begins: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[Reply]:
        """The answer while it comes, by one call and one reservation of input and output limit.

        However the body is left, the provider's stream is closed and the reservation settled
        before this returns. `input_tokens` counts the messages; 0 where nobody counted: then a
        bounded default stands in. `schema` is a JSON schema that the endpoint holds the answer to.
        `begins` is called when room is reserved and the call is about to be made.
        Raises what `Attempts.begun` and `Attempt.bounded` raise.
        """
        tokens = self.estimate(messages, input_tokens)
        async with self._attempts.begun(tokens, workload) as attempt:
            begins()
            with operation("chat", self._endpoint.model) as used:
                response = await attempt.bounded(lambda: self._create(messages, schema))
                async with aclosing(response), aclosing(response.aiter_bytes()) as body:
                    reply = Reply(Events(body), attempt, self._endpoint.model)
                    try:
                        yield reply
                    finally:
                        if reply.usage:
                            used.input_tokens = reply.usage.prompt_tokens
                            used.output_tokens = reply.usage.completion_tokens
        if reply.usage and input_tokens > 0:
            quota.compare(reply.usage.prompt_tokens, input_tokens, self._attempts.pool)

    def estimate(self, messages: Sequence[ChatMessage], input_tokens: int) -> int:
        """Tokens that one call for these messages reserves."""
        text = "".join(message.content for message in messages)
        return estimate([input_tokens], [text]) + self._endpoint.options.output_tokens

    async def reachable(self) -> None:
        """Spends nothing. Raises ProviderUnavailable when the endpoint takes no connection."""
        await reach(self._endpoint.base_url)

    async def close(self) -> None:
        await self._client.close()
        if isinstance(self._key, Tokens):
            await self._key.close()

    async def _create(
        self, messages: Sequence[ChatMessage], schema: Mapping[str, object] | None
    ) -> httpx2.Response:
        options = self._endpoint.options
        body: dict[str, object] = {
            "model": self._endpoint.model,
            "messages": [{"role": one.role, "content": one.content} for one in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            options.limit_parameter: options.output_tokens,
        }
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if options.reasoning_effort:
            body["reasoning_effort"] = options.reasoning_effort
        if schema is not None:
            body["response_format"] = _format(schema)
        # Not by the client's method for chats: that walks through the whole body by its types,
        # which takes longer than the call. Its own stream is seven generators deep, and checks
        # nothing of what it reads.
        response: object = await self._client.post(
            self._address,
            cast_to=httpx2.Response,
            body=body,
            options={"security": {"bearer_auth": True}},
            stream=True,
            stream_cls=AsyncStream[object],
        )
        if not isinstance(response, httpx2.Response):
            raise TypeError("the client gives the response itself where it is asked for one")
        self._attempts.heard(response.headers)
        return response


def _format(schema: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": schema},
    }
