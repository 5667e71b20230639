"""The question's vector, and what is said when there is none."""

from collections.abc import Sequence
from typing import Protocol

import structlog

from capacity import CapacityTooLarge, CapacityUnavailable, Workload
from chassis.errors import ContractMismatch, InvalidInput, Unavailable
from services.retrieve.question import Query

log = structlog.get_logger()


class Embedder(Protocol):
    """The port to the embedding model."""

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        """One vector an input, in order. `tokens` counts each input."""
        ...


async def vector(embedder: Embedder, query: Query) -> Sequence[float]:
    """The query's vector, under interactive capacity.

    Raises Unavailable (EMBEDDING_UNAVAILABLE) whatever is wrong with the model or its settings,
    Exhausted and Unavailable (CAPACITY_UNAVAILABLE) for capacity, InvalidInput for a question that
    the allowance can never hold.
    """
    try:
        found = await embedder.embed([query.text], [query.tokens], Workload.INTERACTIVE)
    except CapacityUnavailable:
        raise
    except CapacityTooLarge as failure:
        raise InvalidInput(failure.message, field="question", reason=failure.reason) from failure
    except (Unavailable, ContractMismatch) as failure:
        log.warning("embedding_failed", reason=failure.reason, problem=failure.message)
        raise Unavailable(
            "the question cannot be embedded now",
            reason="EMBEDDING_UNAVAILABLE",
            retry_after=failure.retry_after,
        ) from failure
    return found[0]
