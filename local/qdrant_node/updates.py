"""Write operations, from the wire to the engine.

The engine's log keeps what it is given. After a kill it decides anew which points a kept condition
means, by indexes that may be ahead of the points, and then misses some that it had written. So, as
in Qdrant itself, whatever depends on what is stored is decided before it is written, and the log
only ever names points by their ids.
"""

from __future__ import annotations  # the stubs' aliases do not exist at run time

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, cast

import qdrant_edge as edge

from corpus.qdrant import wire
from local.qdrant_node.errors import BadInput, Unserved
from local.qdrant_node.filters import engine_filter
from local.qdrant_node.points import (
    engine_id,
    engine_ids,
    engine_payload,
    engine_point,
    engine_vectors,
)
from local.qdrant_node.schema import VectorSchema

# ruff: noqa: ANN401 -- a single operation and a part of a batch are two types with the same fields


# What to write once the earlier operations of a batch are written; None where no point is meant.
Decision = Callable[[edge.EdgeShard], edge.UpdateOperation | None]

_PAGE = 10_000


def batched(operation: wire.PointsUpdateOperation, schema: VectorSchema) -> Decision:
    kind = operation.WhichOneof("operation")
    if kind is None:
        raise BadInput("Malformed batch: an operation is not set")
    part = getattr(operation, kind)
    if isinstance(part, wire.PointsSelector):
        raise Unserved(f"batch operation {kind}")
    if part.HasField("shard_key_selector"):
        raise Unserved("shard keys")
    return engine_update(kind, part, schema)


def engine_update(kind: str, request: Any, schema: VectorSchema) -> Decision:
    """The operation of a kind, as the parts of a batch are called, that a request asks for."""
    match kind:
        case "upsert":
            points = {engine_id(point.id): engine_point(point, schema) for point in request.points}
            return partial(_upserted, points, request.update_mode, _condition(request))
        case "update_vectors":
            vectors = {engine_id(each.id): _point_vectors(each, schema) for each in request.points}
            return partial(_vectors_updated, vectors, _condition(request))
        case "delete_vectors":
            names = _known_names(request.vectors, schema)
            return _selected(request.points_selector, kind, names)
        case "set_payload" | "overwrite_payload":
            key = request.key if request.HasField("key") else None
            payload = engine_payload(request.payload)
            return _selected(request.points_selector, kind, payload, key)
        case "delete_payload":
            return _selected(request.points_selector, kind, list(request.keys))
        case _:
            return _selected(request.points, kind)


def _point_vectors(point: wire.PointVectors, schema: VectorSchema) -> edge.PointVectors:
    return edge.PointVectors(engine_id(point.id), engine_vectors(point.vectors, schema))


def _known_names(selector: wire.VectorsSelector, schema: VectorSchema) -> list[str]:
    for name in selector.names:
        schema.require_known(name)
    return list(selector.names)


def _selected(selector: wire.PointsSelector, operation: str, *arguments: Any) -> Decision:
    on_points = getattr(edge.UpdateOperation, operation)
    match selector.WhichOneof("points_selector_one_of"):
        case "points":
            by_ids = on_points(engine_ids(selector.points.ids), *arguments)
            return lambda _: cast("edge.UpdateOperation", by_ids)
        case "filter":
            condition = engine_filter(selector.filter)

            def decide(engine: edge.EdgeShard) -> edge.UpdateOperation | None:
                meant = list(_matching(engine, condition))
                operation = cast("edge.UpdateOperation", on_points(meant, *arguments))
                return operation if meant else None

            return decide
        case _:
            raise BadInput("No points or filter given to select the points of the operation")


def _upserted(
    points: dict[edge.PointId, edge.Point],
    mode: wire.UpdateMode.ValueType,
    condition: edge.Filter | None,
    engine: edge.EdgeShard,
) -> edge.UpdateOperation | None:
    if mode != wire.Upsert or condition is not None:
        there = _existing(engine, points)
        new = points.keys() - there
        # Who is only to insert has no condition on what there is.
        fitting = there - _unfit(engine, there, condition)
        allowed = {wire.InsertOnly: new, wire.UpdateOnly: fitting}.get(mode, new | fitting)
        points = {name: point for name, point in points.items() if name in allowed}
    return edge.UpdateOperation.upsert_points(list(points.values())) if points else None


def _vectors_updated(
    vectors: dict[edge.PointId, edge.PointVectors],
    condition: edge.Filter | None,
    engine: edge.EdgeShard,
) -> edge.UpdateOperation | None:
    unfit = _unfit(engine, _existing(engine, vectors), condition) if condition else set()
    chosen = [each for name, each in vectors.items() if name not in unfit]
    return edge.UpdateOperation.update_vectors(chosen) if chosen else None


def _existing(engine: edge.EdgeShard, named: Iterable[edge.PointId]) -> set[edge.PointId]:
    found = engine.retrieve(list(named), with_payload=False, with_vector=False)
    return {record.id for record in found}


def _unfit(
    engine: edge.EdgeShard, named: set[edge.PointId], condition: edge.Filter | None
) -> set[edge.PointId]:
    """Those of the points that do not satisfy the condition."""
    if condition is None:
        return set()
    these = edge.Filter(must=[edge.HasIdCondition(named), condition])
    return named - set(_matching(engine, these))


def _matching(engine: edge.EdgeShard, condition: edge.Filter) -> Iterator[edge.PointId]:
    offset: edge.PointId | None = None
    while True:
        page = edge.ScrollRequest(
            offset=offset, limit=_PAGE, filter=condition, with_payload=False, with_vector=False
        )
        records, offset = engine.scroll(page)
        yield from (record.id for record in records)
        if offset is None:
            return


def _condition(request: Any) -> edge.Filter | None:
    return engine_filter(request.update_filter) if request.HasField("update_filter") else None
