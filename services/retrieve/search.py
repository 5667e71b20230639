"""One search: embed, look, judge, cut."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from chassis.identity import Caller
from corpus.points import State
from corpus.profile import EmbeddingProfile
from corpus.scope import Scope
from services.retrieve import embed, filters, guard, question
from services.retrieve.embed import Embedder
from services.retrieve.filters import Filters
from services.retrieve.guard import Found
from services.retrieve.index import Index

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one request asks for; `top_k` is at least 1."""

    question: str
    filters: Filters
    states: tuple[State, ...]
    top_k: int


@dataclass(frozen=True, slots=True)
class Result:
    """`passages` best first, `candidates` before the threshold. Times in seconds."""

    passages: tuple[Found, ...]
    candidates: int
    epoch: int
    chunking_version: str
    embedding_seconds: float
    search_seconds: float


@dataclass(frozen=True, slots=True)
class Search:
    """How this process searches. `threshold` is a cosine, None lets all pass."""

    index: Index
    embedder: Embedder
    profile: EmbeddingProfile
    count: Callable[[str], int]
    threshold: float | None

    async def run(self, wanted: Wanted, caller: Caller) -> Result:
        """The caller's passages for the question; none is an answer too.

        Raises InvalidInput, Forbidden, DataViolation, and what `embed.vector` and Index raise.
        """
        states = filters.states(wanted.states, caller)
        query = question.query(wanted.question, self.profile, self.count)
        version = await self.index.chunking_version()
        (vector, embedding), (epoch, reading) = await _together(
            _timed(embed.vector(self.embedder, query)), _timed(self.index.epoch(caller.tenant))
        )
        scope = Scope.of(caller, epoch=epoch, states=states, chunking_version=version)
        looking = self.index.nearest(vector, scope, wanted.filters, wanted.top_k)
        hits, searching = await _timed(looking)
        found = [guard.admitted(hit, scope) for hit in hits]
        return Result(
            passages=tuple(sorted(filter(self._passes, found), key=_order)),
            candidates=len(hits),
            epoch=epoch,
            chunking_version=version,
            embedding_seconds=embedding,
            search_seconds=reading + searching,
        )

    def _passes(self, found: Found) -> bool:
        return self.threshold is None or found.score >= self.threshold


def _order(found: Found) -> tuple[float, str, int, str]:
    # Equal scores come back in any order; the same request gets the same answer.
    return -found.score, found.passage.document_id, found.passage.chunk, found.id


async def _timed(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    began = time.perf_counter()
    return await work, time.perf_counter() - began


async def _together(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Both results; when one fails the other is cancelled, and its error is the one raised."""
    try:
        async with asyncio.TaskGroup() as group:
            one, two = group.create_task(first), group.create_task(second)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return one.result(), two.result()
