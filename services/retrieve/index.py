"""The index as retrieve reads it. Qdrant's types and errors stay in here."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from chassis import deadlines
from chassis.errors import ContractMismatch, Unavailable
from corpus import collection, epochs
from corpus.bm25 import SparseVector
from corpus.collection import BM25, DENSE, dense_vector
from corpus.failures import INDEX_MISSING, answered
from corpus.fields import Fields
from corpus.points import Key
from corpus.profile import EmbeddingProfile
from corpus.qdrant import Qdrant, wire
from corpus.scope import Scope, has_id, match_any
from services.retrieve.filters import Filters
from services.retrieve.fuse import Ranked

T = TypeVar("T")

CALL_SECONDS = 5.0
TENANTS = 10_000  # whose epochs are remembered
CONDITIONS = 1_024  # of callers, as Qdrant reads them

# How far a graph is searched. By its defaults one of the ten nearest in six was missing under a
# caller's conditions, of 20,000 vectors; so it is one in a thousand.
NEAREST = wire.SearchParams(hnsw_ef=256, acorn=wire.AcornSearchParams(enable=True))


@dataclass(frozen=True, slots=True)
class Point:
    """One point as it came back, not trusted yet."""

    id: str
    fields: Fields
    vector: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked for: by a dense vector, by words, or by both. At most `limit` by each."""

    dense: Sequence[float] | None
    sparse: SparseVector | None
    limit: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen, best first, and the epoch at which the tenant's readers were meanwhile.

    `points` are those whose payload came along.
    """

    dense: Sequence[Ranked]
    sparse: Sequence[Ranked]
    epoch: int
    points: Mapping[str, Point] = field(default_factory=dict)


class Index:
    """One collection behind its alias.

    Calls end within CALL_SECONDS and the request's deadline. All raise what
    `corpus.failures.answered` raises, with Unavailable where nobody has set the index up yet.
    """

    def __init__(self, qdrant: Qdrant, alias: str, profile: EmbeddingProfile) -> None:
        self._qdrant = qdrant
        self._alias = alias
        self._profile = profile
        self._chunking_version = ""
        self._epochs: OrderedDict[str, int] = OrderedDict()

    async def check(self) -> None:
        """Compare the collection with the contract. Raises ContractMismatch."""
        try:
            found = await collection.verify(self._qdrant, self._alias, self._profile)
        except ContractMismatch as failure:
            raise _missing(failure) from failure
        self._chunking_version = found

    async def chunking_version(self) -> str:
        """The one whose passages are read, as of the last check."""
        if not self._chunking_version:
            await self.check()
        return self._chunking_version

    async def epoch(self, tenant: str) -> int:
        """The epoch that readers are at; 0 before anything was published."""
        try:
            return self._noted(
                tenant, await epochs.read(self._qdrant, self._alias, tenant, _seconds())
            )
        except ContractMismatch as failure:
            raise _missing(failure) from failure

    async def latest_epoch(self, tenant: str) -> int:
        """The epoch as it was last seen here, which a search then compares with the current one."""
        known = self._epochs.get(tenant)
        return await self.epoch(tenant) if known is None else known

    async def look(
        self, look: Look, scope: Scope, filters: Filters, *, with_payload: bool = False
    ) -> Seen:
        """The points of the scope and the filters that suit best, in one batch.

        The tenant's epoch is read in the same batch: who looked at another one looks again.
        """
        condition = _condition(scope, filters)
        asked = [
            wire.QueryPoints(
                collection_name=self._alias,
                using=using,
                query=wire.Query(nearest=vector),
                filter=condition,
                params=params,
                limit=look.limit,
                with_payload=_WITH if with_payload else _WITHOUT,
            )
            for using, vector, params in _queries(look, scope)
        ]
        batch = wire.QueryBatchPoints(
            collection_name=self._alias,
            query_points=[*asked, _epoch_of(scope.tenant, self._alias)],
        )
        reply: wire.QueryBatchResponse = await _answered(self._qdrant.points.QueryBatch, batch)
        *found, current = [one.result for one in reply.result]
        payload = current[0].payload if current else None
        hits = dict(zip((query.using for query in asked), found, strict=True))
        return Seen(
            dense=_ranked(hits.get(DENSE, [])),
            sparse=_ranked(hits.get(BM25, [])),
            epoch=self._noted(scope.tenant, epochs.held(scope.tenant, payload)),
            points=_points(found) if with_payload else {},
        )

    async def fetch(self, point_ids: Sequence[str], *, with_vectors: bool) -> list[Point]:
        """The points, in any order; one that is gone is left out."""
        if not point_ids:
            return []
        request = wire.GetPoints(
            collection_name=self._alias,
            ids=[wire.PointId(uuid=name) for name in point_ids],
            with_payload=_WITH,
            with_vectors=_DENSE if with_vectors else None,
        )
        reply: wire.GetResponse = await _answered(self._qdrant.points.Get, request)
        return [_point(one, dense_vector(one)) for one in reply.result]

    async def among(self, point_ids: Sequence[str], scope: Scope) -> list[Point]:
        """Those of the points that are in the scope, in any order."""
        request = wire.ScrollPoints(
            collection_name=self._alias,
            filter=wire.Filter(must=[has_id(*point_ids), *scope.conditions()]),
            limit=len(point_ids),
            with_payload=_WITH,
        )
        reply: wire.ScrollResponse = await _answered(self._qdrant.points.Scroll, request)
        return [_point(one) for one in reply.result]

    async def close(self) -> None:
        await self._qdrant.close()

    def _noted(self, tenant: str, epoch: int) -> int:
        self._epochs[tenant] = epoch
        self._epochs.move_to_end(tenant)
        if len(self._epochs) > TENANTS:
            self._epochs.popitem(last=False)
        return epoch


async def _answered(call: Callable[..., Awaitable[T]], request: Any) -> T:  # noqa: ANN401 - a message
    """The reply to one call; Qdrant's failures as ours."""
    try:
        return await answered(call, request, _seconds())
    except ContractMismatch as failure:
        raise _missing(failure) from failure


def _seconds() -> float:
    return deadlines.within(CALL_SECONDS).for_hop()


Asked = tuple[str, wire.VectorInput, wire.SearchParams]

_WITH = wire.WithPayloadSelector(enable=True)
_WITHOUT = wire.WithPayloadSelector(enable=False)
_DENSE = wire.WithVectorsSelector(include=wire.VectorsSelector(names=[DENSE]))


def _queries(look: Look, scope: Scope) -> Iterator[Asked]:
    if look.dense is not None:
        yield DENSE, wire.VectorInput(dense=wire.DenseVector(data=look.dense)), NEAREST
    # A vector without a term finds nothing.
    if look.sparse is not None and look.sparse.indices:
        terms = wire.SparseVector(indices=look.sparse.indices, values=look.sparse.values)
        # A word is as rare as it is among what the caller has a right to: no score tells of the
        # rest. Without regard to epochs, whose conditions would double the time that words take.
        rarity = wire.IdfParams(corpus=_rights(scope))
        yield BM25, wire.VectorInput(sparse=terms), wire.SearchParams(idf=rarity)


@lru_cache(maxsize=CONDITIONS)
def _epoch_of(tenant: str, alias: str) -> wire.QueryPoints:
    condition = wire.Filter(must=[has_id(epochs.point_id(tenant))])
    return wire.QueryPoints(collection_name=alias, filter=condition, limit=1, with_payload=_WITH)


def _ranked(found: Sequence[wire.ScoredPoint]) -> list[Ranked]:
    return [Ranked(point.id.uuid, point.score) for point in found]


def _points(found: Iterable[Sequence[wire.ScoredPoint]]) -> dict[str, Point]:
    return {point.id.uuid: _point(point) for each in found for point in each}


def _point(found: wire.ScoredPoint | wire.RetrievedPoint, vector: Sequence[float] = ()) -> Point:
    return Point(found.id.uuid, Fields(found.id.uuid, found.payload), vector)


def _condition(scope: Scope, filters: Filters) -> wire.Filter:
    # Filters may be of any size and are hardly asked for twice.
    return _scoped(scope) if filters == Filters() else _narrowed(scope, filters)


@lru_cache(maxsize=CONDITIONS)
def _scoped(scope: Scope) -> wire.Filter:
    return _narrowed(scope, Filters())


def _narrowed(scope: Scope, filters: Filters) -> wire.Filter:
    return wire.Filter(must=[*scope.conditions(), *_narrowing(filters)])


@lru_cache(maxsize=CONDITIONS)
def _rights(scope: Scope) -> wire.Filter:
    return wire.Filter(must=scope.rights())


def _narrowing(filters: Filters) -> Iterator[wire.Condition]:
    asked = {
        Key.DOCUMENT_TYPE: filters.document_types,
        Key.DOCUMENT: filters.document_ids,
        Key.AREA: filters.areas,
    }
    for key, values in asked.items():
        if values:
            yield match_any(key, values)


def _missing(failure: ContractMismatch) -> ContractMismatch | Unavailable:
    if failure.reason != INDEX_MISSING:
        return failure
    return Unavailable(
        "the index is not set up yet; ingest does that when it starts", reason=INDEX_MISSING
    )
