"""One search: embed, look, fuse, judge, spread."""

import asyncio
import math
import operator
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, TypeVar

import structlog

from capacity import Workload
from chassis import deadlines
from chassis.errors import Unavailable
from chassis.identity import Caller
from corpus import bm25
from corpus.points import State
from corpus.profile import EmbeddingProfile
from corpus.scope import Scope
from services.retrieve import embed, filters, guard, question
from services.retrieve.embed import Embeddings
from services.retrieve.filters import Filters
from services.retrieve.fuse import Fusion, Ranked, Space, in_order
from services.retrieve.guard import Found
from services.retrieve.index import Index, Look, Point, Seen
from services.retrieve.spread import Candidate, spread

# Of how many times as many passages as are wanted the most different ones are chosen.
CHOICE = 4

T = TypeVar("T")

log = structlog.get_logger()


class Mode(Enum):
    """What passages are found by."""

    DENSE = auto()
    SPARSE = auto()
    FUSED = auto()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one request asks for; `top_k` is at least 1, `diversity` from 0 to 1."""

    question: str
    filters: Filters
    states: tuple[State, ...]
    top_k: int
    mode: Mode
    diversity: float
    workload: Workload = Workload.INTERACTIVE


@dataclass(frozen=True, slots=True)
class Ranking:
    """How passages are ranked in this process.

    `candidates` by each vector are fused, or spread. A passage scores at least the threshold of the
    score's space; a space without one lets all pass.
    """

    fusion: Fusion
    candidates: int
    thresholds: Mapping[Space, float]


@dataclass(frozen=True, slots=True)
class Result:
    """`passages` best first; of `candidates` so many `passed` the threshold. Times in seconds."""

    passages: tuple[Found, ...]
    space: Space
    candidates: int
    passed: int
    epoch: int
    chunking_version: str
    embedding_seconds: float
    search_seconds: float


@dataclass(frozen=True, slots=True)
class Search:
    """How this process searches."""

    index: Index
    embeddings: Embeddings
    profile: EmbeddingProfile
    count: Callable[[str], int]
    ranking: Ranking

    async def run(self, wanted: Wanted, caller: Caller) -> Result:
        """The caller's passages for the question; none is an answer too.

        Raises InvalidInput, Forbidden, DataViolation, and what Embeddings and Index raise.
        """
        states = filters.states(wanted.states, caller)
        version = await self.index.chunking_version()
        look, embedding = await _timed(self._look(wanted))
        began = time.perf_counter()
        epoch = await self.index.latest_epoch(caller.tenant)
        scope = Scope.of(caller, epoch=epoch, states=states, chunking_version=version)
        seen, scope = await self._seen(wanted, look, scope)
        ranked, space = self._ranked(look, seen)
        least = self.ranking.thresholds.get(space, -math.inf)
        passed = [one for one in ranked if one.score >= least]
        chosen = await self._chosen(wanted, look, seen, scope, passed)
        return Result(
            passages=tuple(sorted(chosen, key=_order)),
            space=space,
            candidates=len(ranked),
            passed=len(passed),
            epoch=scope.epoch,
            chunking_version=version,
            embedding_seconds=embedding,
            search_seconds=time.perf_counter() - began,
        )

    async def _look(self, wanted: Wanted) -> Look:
        text = question.normalised(wanted.question)
        vector = None if wanted.mode is Mode.SPARSE else await self._vector(text, wanted)
        by_words = vector is None or wanted.mode is Mode.FUSED
        terms = bm25.question_vector(text) if by_words else None
        return Look(vector, terms, self._limit(wanted, fused=bool(vector and terms)))

    def _limit(self, wanted: Wanted, *, fused: bool) -> int:
        if fused or wanted.diversity:
            return max(self.ranking.candidates, wanted.top_k)
        return wanted.top_k

    async def _vector(self, text: str, wanted: Wanted) -> Sequence[float] | None:
        """None where the question can be looked for by its words alone."""
        query = question.query(text, self.profile, self.count)
        try:
            async with asyncio.timeout(_patience(wanted.mode)):
                return await self.embeddings.vector(query, wanted.workload)
        except Unavailable as failure:
            if wanted.mode is not Mode.FUSED or failure.reason != embed.UNAVAILABLE:
                raise
        except TimeoutError:
            pass  # only where words alone can be searched is there a limit
        log.warning("searched_by_words_alone")
        return None

    async def _seen(self, wanted: Wanted, look: Look, scope: Scope) -> tuple[Seen, Scope]:
        """What readers see at the current epoch, which the last one nearly always is."""
        # What is not chosen among needs no second call.
        whole = not wanted.diversity and (look.dense is None or look.sparse is None)
        seen = await self.index.look(look, scope, wanted.filters, with_payload=whole)
        if seen.epoch == scope.epoch:
            return seen, scope
        # Rows outlive their epoch by a minute: it does no harm if there is a later one by now.
        scope = replace(scope, epoch=seen.epoch)
        return await self.index.look(look, scope, wanted.filters, with_payload=whole), scope

    def _ranked(self, look: Look, seen: Seen) -> tuple[list[Ranked], Space]:
        if look.sparse is None:
            return in_order(seen.dense), Space.COSINE
        if look.dense is None:
            return in_order(seen.sparse), Space.BM25
        fusion, asked = self.ranking.fusion, math.fsum(look.sparse.values)
        return fusion.fused(seen.dense, seen.sparse, asked), fusion.space

    async def _chosen(
        self, wanted: Wanted, look: Look, seen: Seen, scope: Scope, passed: Sequence[Ranked]
    ) -> Iterable[Found]:
        if not wanted.diversity:
            return await self._admitted(look, seen, scope, passed[: wanted.top_k])
        pool = await self._admitted(
            look, seen, scope, passed[: wanted.top_k * CHOICE], vectors=True
        )
        candidates = [Candidate(one.score, one.vector) for one in pool]
        places = spread(candidates, wanted.diversity, wanted.top_k)
        return [pool[place] for place in places]

    async def _admitted(
        self,
        look: Look,
        seen: Seen,
        scope: Scope,
        pool: Sequence[Ranked],
        *,
        vectors: bool = False,
    ) -> list[Found]:
        """The pool's passages, less those removed meanwhile. Raises DataViolation for a bad one."""
        lacking = [one.id for one in pool if one.id not in seen.points]
        near = {one.id: one.score for one in seen.dense}
        apart = look.dense is not None and not near.keys() >= set(lacking)
        fetched = await self.index.fetch(lacking, with_vectors=vectors or apart)
        points = {**seen.points, **{point.id: point for point in fetched}}
        return [
            guard.admitted(point, one.score, scope, _cosine(look, near, point))
            for one in pool
            if (point := points.get(one.id))
        ]


def _patience(mode: Mode) -> float | None:
    """Seconds for the model. One that hangs must leave time to search by words."""
    whole = deadlines.current()
    return whole.remaining() / 2 if whole and mode is Mode.FUSED else None


def _cosine(look: Look, near: Mapping[str, float], point: Point) -> float | None:
    """None where the question was not embedded, or the passage's vector was not fetched."""
    if (known := near.get(point.id)) is not None:
        return known
    if look.dense is None or not point.vector:
        return None
    product = math.fsum(map(operator.mul, look.dense, point.vector))
    return product / (math.hypot(*look.dense) * math.hypot(*point.vector))


def _order(found: Found) -> tuple[float, str, int, str]:
    # The same request gets the same answer, also of equal scores.
    return -found.score, found.passage.document_id, found.passage.chunk, found.id


async def _timed(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    began = time.perf_counter()
    return await work, time.perf_counter() - began
