"""Write operations, from the wire to the engine."""

from typing import Any, cast

import qdrant_edge as edge
from qdrant_client import grpc as wire

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


def batched(operation: wire.PointsUpdateOperation, schema: VectorSchema) -> edge.UpdateOperation:
    kind = operation.WhichOneof("operation")
    if kind is None:
        raise BadInput("Malformed batch: an operation is not set")
    part = getattr(operation, kind)
    if isinstance(part, wire.PointsSelector):
        raise Unserved(f"batch operation {kind}")
    if part.HasField("shard_key_selector"):
        raise Unserved("shard keys")
    return engine_update(kind, part, schema)


def engine_update(kind: str, request: Any, schema: VectorSchema) -> edge.UpdateOperation:
    """The operation of a kind, as the parts of a batch are called, that a request asks for."""
    match kind:
        case "upsert":
            return edge.UpdateOperation.upsert_points(
                [engine_point(point, schema) for point in request.points],
                condition=_condition(request),
                update_mode=getattr(edge.UpdateMode, wire.UpdateMode.Name(request.update_mode)),
            )
        case "update_vectors":
            return edge.UpdateOperation.update_vectors(
                [_point_vectors(point, schema) for point in request.points],
                condition=_condition(request),
            )
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


def _selected(
    selector: wire.PointsSelector, operation: str, *arguments: Any
) -> edge.UpdateOperation:
    """The engine has each operation twice: for ids, and by filter under a name of its own."""
    match selector.WhichOneof("points_selector_one_of"):
        case "points":
            by_ids = getattr(edge.UpdateOperation, operation)
            operation_on = by_ids(engine_ids(selector.points.ids), *arguments)
        case "filter":
            by_filter = getattr(edge.UpdateOperation, f"{operation}_by_filter")
            operation_on = by_filter(engine_filter(selector.filter), *arguments)
        case _:
            raise BadInput("No points or filter given to select the points of the operation")
    return cast("edge.UpdateOperation", operation_on)


def _condition(request: Any) -> edge.Filter | None:
    return engine_filter(request.update_filter) if request.HasField("update_filter") else None
