"""Passages to vectors, in calls that the provider's allowance can hold."""

import asyncio
from array import array
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from capacity import Workload
from chassis import deadlines
from chassis.errors import Exhausted, Internal, Unavailable
from services.ingest.chunk import Chunk

PAUSES = (0.5, 1.0, 2.0, 4.0)  # seconds before each further try
LONGEST = 600.0  # seconds that all tries of one batch may take without a deadline
SPARE = 1.0  # seconds before a request's end, to keep what is embedded and say how far it came

log = structlog.get_logger()


class Embedder(Protocol):
    """The port to the embedding model."""

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        """One vector an input, in order. `tokens` counts each input."""
        ...


@dataclass(frozen=True, slots=True)
class Batching:
    """Most inputs and most tokens of one call; `input_limit` is most tokens of one input."""

    inputs: int
    tokens: int
    input_limit: int

    async def embed(
        self, embedder: Embedder, chunks: Sequence[Chunk]
    ) -> AsyncGenerator[list[Sequence[float]]]:
        """The vectors of the chunks call by call, in order, as 32-bit floats.

        Raises what the embedder raises, DeadlineExceeded somewhat before the request's end, and
        Internal (INPUT_TOO_LONG) for an input over the model's limit, which the model would cut
        without saying so.
        """
        for batch in self.batches(chunks):
            inputs = [chunk.embedding_input for chunk in batch]
            counts = [chunk.tokens for chunk in batch]
            if max(counts) > self.input_limit:
                raise Internal(
                    f"{max(counts)} tokens in one input where {self.input_limit} are allowed",
                    reason="INPUT_TOO_LONG",
                )
            with deadlines.keeping(SPARE):
                found = await self._patiently(embedder, inputs, counts)
            yield [array("f", vector) for vector in found]

    async def _patiently(
        self, embedder: Embedder, inputs: Sequence[str], counts: Sequence[int]
    ) -> list[list[float]]:
        """One call, repeated after a pause while the provider or the allowance fails.

        Each try is a reservation of its own. Ends with the last failure when PAUSES are used up or
        reach beyond the request's deadline.
        """
        deadline = deadlines.within(LONGEST)
        for pause in PAUSES:
            try:
                return await embedder.embed(inputs, counts, Workload.BATCH)
            except (Unavailable, Exhausted) as failure:
                wait = max(pause, failure.retry_after or 0)
                if wait >= deadline.remaining():
                    raise
                log.info("embedding_again", reason=failure.reason, wait=wait)
            await asyncio.sleep(wait)
        return await embedder.embed(inputs, counts, Workload.BATCH)

    def batches(self, chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
        """Runs of chunks within both limits, at least one a run."""
        first, size = 0, 0
        for position, chunk in enumerate(chunks):
            full = position - first == self.inputs or size + chunk.tokens > self.tokens
            if position > first and full:
                yield chunks[first:position]
                first, size = position, 0
            size += chunk.tokens
        if chunks:
            yield chunks[first:]
