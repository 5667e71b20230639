"""The question's vector, kept for whoever asks the same again, and what is said without one."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from capacity import CapacityTooLarge, CapacityUnavailable, Workload
from chassis.errors import (
    ContractMismatch,
    DeadlineExceeded,
    InvalidInput,
    SluiceError,
    Unavailable,
)
from services.retrieve.question import Query

UNAVAILABLE = "EMBEDDING_UNAVAILABLE"

log = structlog.get_logger()


class Embedder(Protocol):
    """The port to the embedding model."""

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        """One vector an input, in order. `tokens` counts each input."""
        ...


@dataclass(slots=True)
class _Flight:
    """A question that is with the model now, and how it failed if it did."""

    landed: asyncio.Event = field(default_factory=asyncio.Event)
    failure: SluiceError | None = None


class Embeddings:
    """Vectors of questions under one profile, the last `kept` of them remembered.

    Questions are equal where their embedding inputs are; equal ones asked at once for the same
    workload are one call: who waits for an answer never waits for batch work's turn.
    """

    def __init__(self, embedder: Embedder, kept: int) -> None:
        self._embedder = embedder
        self._most = kept
        self._kept: OrderedDict[str, Sequence[float]] = OrderedDict()
        self._flights: dict[tuple[str, Workload], _Flight] = {}

    async def vector(
        self, query: Query, workload: Workload = Workload.INTERACTIVE
    ) -> Sequence[float]:
        """The query's vector in 32-bit floats, under the workload's capacity.

        Raises Unavailable (EMBEDDING_UNAVAILABLE) whatever is wrong with the model or its settings,
        Exhausted and Unavailable (CAPACITY_UNAVAILABLE) for capacity, InvalidInput for a question
        that the allowance can never hold.
        """
        while True:
            if (known := self._kept.get(query.text)) is not None:
                self._kept.move_to_end(query.text)
                return known
            if (flight := self._flights.get((query.text, workload))) is None:
                return await self._fly(query, workload)
            await flight.landed.wait()
            if flight.failure is not None:
                raise flight.failure

    async def _fly(self, query: Query, workload: Workload) -> Sequence[float]:
        flight = self._flights[query.text, workload] = _Flight()
        try:
            found = array("f", await _asked(self._embedder, query, workload))
        except DeadlineExceeded:
            raise  # the time of who asked first; the others have their own
        except SluiceError as failure:
            flight.failure = failure
            raise
        finally:
            del self._flights[query.text, workload]
            flight.landed.set()
        self._keep(query.text, found)
        return found

    def _keep(self, text: str, vector: Sequence[float]) -> None:
        self._kept[text] = vector
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


async def _asked(embedder: Embedder, query: Query, workload: Workload) -> Sequence[float]:
    try:
        found = await embedder.embed([query.text], [query.tokens], workload)
    except CapacityUnavailable:
        raise
    except CapacityTooLarge as failure:
        raise InvalidInput(failure.message, field="question", reason=failure.reason) from failure
    except (Unavailable, ContractMismatch) as failure:
        log.warning("embedding_failed", reason=failure.reason, problem=failure.message)
        raise Unavailable(
            "the question cannot be embedded now",
            reason=UNAVAILABLE,
            retry_after=failure.retry_after,
        ) from failure
    return found[0]
