"""Texts to vectors, by any endpoint that speaks OpenAI's embeddings protocol."""

import math
from collections.abc import Sequence

import structlog
from openai import AsyncOpenAI
from pydantic import BaseModel, ConfigDict, ValidationError

from capacity import SharedBucket, Workload
from chassis.errors import ContractMismatch
from providers import quota
from providers.attempt import LARGEST_USAGE, Attempts, connect, estimate
from providers.credentials import Tokens
from providers.failures import InvalidReply
from providers.operation import operation
from providers.reach import reach

log = structlog.get_logger()

# An index normalises in 32-bit floats, where the squares of other lengths become 0 or infinity.
SHORTEST, LONGEST = 1e-18, 1e18


class _Vector(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    index: int
    embedding: list[float]


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    total_tokens: int | None = None


class _Reply(BaseModel):
    data: list[_Vector]
    usage: _Usage | None = None


class EmbeddingClient:
    """One model at one endpoint; its calls draw on `bucket`."""

    def __init__(  # noqa: PLR0913 - what one model at one endpoint is
        self,
        *,
        base_url: str,
        api_key: str | Tokens,
        model: str,
        dimensions: int,
        bucket: SharedBucket,
        attempt_timeout: float,
        interactive_wait: float = 0.0,
    ) -> None:
        self._client: AsyncOpenAI = connect(base_url, api_key, attempt_timeout)
        self._key = api_key
        self._base_url = base_url
        self._model = model
        self._dimensions = dimensions
        self._attempts = Attempts("embeddings", bucket, attempt_timeout, interactive_wait)

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        """The inputs' vectors, in the order of the inputs, by one call and one reservation.

        `tokens` counts each input, 0 where nobody counted. Every vector has the model's dimension
        and is finite and not zero. Raises what `Attempts.begun` and `Attempt.bounded` raise,
        InvalidReply for a reply that is short, doubled or unreadable, and ContractMismatch
        (EMBEDDING_DIMENSIONS) for another model's vectors.
        """
        if not inputs:
            return []
        async with self._attempts.begun(estimate(tokens, inputs), workload) as attempt:
            with operation("embeddings", self._model) as used:
                reply = await attempt.bounded(lambda: self._asked(inputs))
                used.input_tokens = _tokens(reply.usage)
                if used.input_tokens is not None:
                    attempt.reservation.report(used.input_tokens)
        if used.input_tokens is not None and min(tokens) > 0:
            quota.compare(used.input_tokens, sum(tokens), self._attempts.pool)
        return self._ordered(reply.data, len(inputs))

    async def _asked(self, inputs: Sequence[str]) -> _Reply:
        raw = await self._client.embeddings.with_raw_response.create(
            input=list(inputs), model=self._model, encoding_format="float"
        )
        self._attempts.heard(raw.headers)
        # The client's own parser checks no types, so the bytes are read here.
        return _parse(raw.content)

    async def reachable(self) -> None:
        """Spends nothing. Raises ProviderUnavailable when the endpoint takes no connection."""
        await reach(self._base_url)

    async def close(self) -> None:
        await self._client.close()
        if isinstance(self._key, Tokens):
            await self._key.close()

    def _ordered(self, vectors: Sequence[_Vector], wanted: int) -> list[list[float]]:
        found = {vector.index: vector.embedding for vector in vectors}
        if len(vectors) != wanted or found.keys() != set(range(wanted)):
            raise InvalidReply(f"{len(vectors)} vectors do not match the {wanted} texts sent")
        ordered = [found[index] for index in range(wanted)]
        for vector in ordered:
            self._check(vector)
        return ordered

    def _check(self, vector: Sequence[float]) -> None:
        if len(vector) != self._dimensions:
            raise ContractMismatch(
                f"the embedding model gives {len(vector)} dimensions where the profile has"
                f" {self._dimensions}",
                reason="EMBEDDING_DIMENSIONS",
            )
        if not SHORTEST < math.hypot(*vector) < LONGEST:
            raise InvalidReply("the embedding model gave a vector without a direction")


def _parse(body: bytes) -> _Reply:
    try:
        return _Reply.model_validate_json(body)
    except ValidationError as error:
        log.warning("embedding_reply_invalid", problems=error.error_count())
        raise InvalidReply("the embedding reply cannot be read") from error


def _tokens(usage: _Usage | None) -> int | None:
    """What was used; None where it is not said. Every call reads something: 0 is not said."""
    if usage is None:
        return None
    used = max(usage.prompt_tokens or 0, usage.total_tokens or 0)
    return used if 0 < used <= LARGEST_USAGE else None
