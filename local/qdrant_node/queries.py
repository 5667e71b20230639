"""Queries, from the wire to the engine."""

from __future__ import annotations  # the stubs' aliases do not exist at run time

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import qdrant_edge as edge
from google.protobuf.message import Message

from corpus.qdrant import wire
from local.qdrant_node.database import Collection
from local.qdrant_node.errors import BadInput, Missing, Unserved
from local.qdrant_node.filters import engine_filter, optional_filter
from local.qdrant_node.points import (
    NamedVector,
    dense_vector,
    engine_id,
    payload_selector,
    sparse_vector,
    vector_selector,
    wire_id,
)

_DEFAULT_LIMIT = 10
_DEFAULT_RRF_K = 2
_DEFAULT_DIVERSITY = 0.5

_Level = wire.QueryPoints | wire.PrefetchQuery


@dataclass(frozen=True, slots=True)
class _Scoring:
    """How points are scored, and which points the query names and so must not return."""

    query: edge.ScoringQueryType | None
    named: frozenset[edge.PointId] = frozenset()


@dataclass(frozen=True, slots=True)
class Conversion:
    """Queries of one collection; ids of other collections are looked up through `find`."""

    collection: Collection
    find: Callable[[str], Collection]

    def request(self, query: wire.QueryPoints) -> edge.QueryRequest:
        scoring = self._scoring(query)
        return edge.QueryRequest(
            limit=limit(query),
            offset=query.offset,
            query=scoring.query,
            prefetches=self._prefetches(query.prefetch),
            with_vector=vector_selector(query.with_vectors),
            with_payload=payload_selector(query.with_payload, otherwise=False),
            filter=_without_named(query, scoring),
            score_threshold=_score_threshold(query),
            params=_search_params(query),
        )

    def _prefetches(self, prefetches: Iterable[wire.PrefetchQuery]) -> list[edge.Prefetch]:
        return [self._prefetch(prefetch) for prefetch in prefetches]

    def _prefetch(self, prefetch: wire.PrefetchQuery) -> edge.Prefetch:
        scoring = self._scoring(prefetch)
        return edge.Prefetch(
            limit=limit(prefetch),
            query=scoring.query,
            prefetches=self._prefetches(prefetch.prefetch),
            filter=_without_named(prefetch, scoring),
            score_threshold=_score_threshold(prefetch),
            params=_search_params(prefetch),
        )

    def _scoring(self, level: _Level) -> _Scoring:  # noqa: PLR0911 -- a line a variant
        if not level.HasField("query"):
            return _Scoring(None)
        query = level.query
        match query.WhichOneof("variant"):
            case "nearest":
                return self._nearest(query.nearest, level)
            case "nearest_with_mmr":
                return self._diverse(query.nearest_with_mmr, level)
            case "fusion":
                return _Scoring(_fusion(query.fusion))
            case "rrf":
                return _Scoring(_rrf(query.rrf))
            case "order_by":
                return _Scoring(order_by(query.order_by))
            case "sample":
                return _Scoring(edge.Sample.Random)
            case None:
                raise BadInput("Query variant is missing")
            case kind:
                raise Unserved(f"query variant {kind}")

    def _nearest(self, nearest: wire.VectorInput, level: _Level) -> _Scoring:
        vector, named = self._vector(nearest, level)
        return _Scoring(edge.Query.Nearest(vector, using=level.using), named)

    def _diverse(self, diverse: wire.NearestInputWithMmr, level: _Level) -> _Scoring:
        vector, named = self._vector(diverse.nearest, level)
        if isinstance(vector, edge.SparseVector):
            raise Unserved("MMR over a sparse vector")
        mmr = diverse.mmr
        diversity = mmr.diversity if mmr.HasField("diversity") else _DEFAULT_DIVERSITY
        if not 0 <= diversity <= 1:
            raise BadInput("mmr.diversity must be from 0 to 1")
        candidates = mmr.candidates_limit if mmr.HasField("candidates_limit") else limit(level)
        query = edge.Mmr(vector, 1 - diversity, candidates, using=level.using)
        return _Scoring(query, named)

    def _vector(
        self, given: wire.VectorInput, level: _Level
    ) -> tuple[NamedVector, frozenset[edge.PointId]]:
        schema = self.collection.schema
        match given.WhichOneof("variant"):
            case "dense":
                return dense_vector(level.using, given.dense, schema), frozenset()
            case "sparse":
                return sparse_vector(level.using, given.sparse, schema), frozenset()
            case "id":
                return self._stored_vector(given.id, level)
            case None:
                raise BadInput("Malformed query vector: no variant is set")
            case kind:
                raise Unserved(f"query by {kind}")

    def _stored_vector(
        self, point_id: wire.PointId, level: _Level
    ) -> tuple[NamedVector, frozenset[edge.PointId]]:
        """The vector of a point; only a point of the queried collection is left out of the hits."""
        identity = engine_id(point_id)
        if not level.HasField("lookup_from"):
            return _read_vector(self.collection, identity, level.using), frozenset({identity})
        place = level.lookup_from
        if place.HasField("shard_key_selector"):
            raise Unserved("shard keys")
        using = place.vector_name if place.HasField("vector_name") else level.using
        return _read_vector(self.find(place.collection_name), identity, using), frozenset()


def _read_vector(collection: Collection, identity: edge.PointId, using: str) -> NamedVector:
    collection.schema.require_known(using)
    records = collection.engine.retrieve([identity], with_payload=False, with_vector=[using])
    if not records:
        raise Missing(f"No point with id {_text(identity)} found")
    stored = records[0].vector
    vector = stored.get(using) if isinstance(stored, dict) else stored
    if vector is None:
        raise Missing(f"Vector {using!r} of point {_text(identity)} not found")
    return cast("NamedVector", vector)


def _text(identity: edge.PointId) -> str:
    point_id = wire_id(identity)
    return point_id.uuid or str(point_id.num)


def limit(request: _Level | wire.ScrollPoints | wire.FacetCounts) -> int:
    """The limit asked for, or Qdrant's default. Raises BadInput for 0."""
    if not request.HasField("limit"):
        return _DEFAULT_LIMIT
    if request.limit < 1:
        raise BadInput("limit: value 0 invalid, must be 1 or larger")
    return request.limit


def order_by(order: wire.OrderBy) -> edge.OrderBy:
    return edge.OrderBy(
        order.key,
        direction=edge.Direction.Desc if order.direction == wire.Desc else edge.Direction.Asc,
        start_from=_start(order.start_from),
    )


def _start(start: wire.StartFrom) -> int | float | str | None:
    match start.WhichOneof("value"):
        case "timestamp":
            return start.timestamp.ToJsonString()
        case "datetime":
            return start.datetime
        case "integer":
            return start.integer
        case "float":
            return start.float
        case _:
            return None


def _fusion(fusion: int) -> edge.ScoringQueryType:
    if fusion == wire.DBSF:
        return cast("edge.Fusion", edge.Fusion.Dbsf())
    return cast("edge.Fusion", edge.Fusion.Rrf(k=_DEFAULT_RRF_K))


def _rrf(rrf: wire.Rrf) -> edge.ScoringQueryType:
    k = rrf.k if rrf.HasField("k") else _DEFAULT_RRF_K
    if k < 1:
        raise BadInput("rrf.k must be 1 or larger")
    return cast("edge.Fusion", edge.Fusion.Rrf(k=k, weights=list(rrf.weights) or None))


def _without_named(level: _Level, scoring: _Scoring) -> edge.Filter | None:
    condition = optional_filter(level)
    if not scoring.named:
        return condition
    return edge.Filter(
        must=[condition] if condition else None,
        must_not=[edge.HasIdCondition(set(scoring.named))],
    )


def _score_threshold(level: _Level) -> float | None:
    return level.score_threshold if level.HasField("score_threshold") else None


def _search_params(level: _Level) -> edge.SearchParams | None:
    if not level.HasField("params"):
        return None
    params = level.params
    return edge.SearchParams(
        hnsw_ef=params.hnsw_ef if params.HasField("hnsw_ef") else None,
        exact=params.exact,
        indexed_only=params.indexed_only,
        quantization=edge.QuantizationSearchParams(**_given(params.quantization)),
        acorn=edge.AcornSearchParams(**_given(params.acorn)),
        idf=_idf(params),
    )


def _given(message: Message) -> dict[str, Any]:
    return {field.name: value for field, value in message.ListFields()}


def _idf(params: wire.SearchParams) -> edge.IdfParams | None:
    if not params.HasField("idf"):
        return None
    return edge.IdfParams(
        engine_filter(params.idf.corpus) if params.idf.HasField("corpus") else None
    )
