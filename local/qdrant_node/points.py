"""Points, payloads and vectors, from the wire to the engine and back."""

from __future__ import annotations  # the stubs' aliases do not exist at run time

import math
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, cast

import qdrant_edge as edge

from corpus.qdrant import wire
from local.qdrant_node.errors import BadInput, Unserved
from local.qdrant_node.schema import VectorSchema

NamedVector = list[float] | edge.SparseVector


def engine_id(point_id: wire.PointId) -> edge.PointId:
    kind = point_id.WhichOneof("point_id_options")
    if kind == "num":
        return point_id.num
    if kind is None:
        raise BadInput("Malformed point id: neither num nor uuid is set")
    try:
        return uuid.UUID(point_id.uuid)
    except ValueError as failure:
        raise BadInput(f"Unable to parse UUID: {point_id.uuid}") from failure


def engine_ids(point_ids: Iterable[wire.PointId]) -> list[edge.PointId]:
    return [engine_id(point_id) for point_id in point_ids]


def wire_id(point_id: edge.PointId) -> wire.PointId:
    if isinstance(point_id, int):
        return wire.PointId(num=point_id)
    return wire.PointId(uuid=str(point_id))


def engine_payload(payload: Mapping[str, wire.Value]) -> dict[str, Any]:
    return {key: _engine_value(value) for key, value in payload.items()}


def _engine_value(value: wire.Value) -> Any:  # noqa: ANN401 -- any JSON value
    match value.WhichOneof("kind"):
        case None | "null_value":
            return None
        case "struct_value":
            return engine_payload(value.struct_value.fields)
        case "list_value":
            return [_engine_value(item) for item in value.list_value.values]
        case "double_value" if not math.isfinite(value.double_value):
            raise BadInput("A payload holds a number that is not finite")
        case kind:
            return getattr(value, kind)


def _wire_value(value: Any) -> dict[str, Any]:  # noqa: ANN401, PLR0911 -- any JSON value; a line a kind
    """What makes a message of a value. A message of many is made in one go, in half the time."""
    match value:
        case str():
            return {"string_value": value}
        case bool():
            return {"bool_value": value}
        case int():
            return {"integer_value": value}
        case float():
            return {"double_value": value}
        case None:
            return {"null_value": wire.NULL_VALUE}
        case list():
            return {"list_value": {"values": [_wire_value(item) for item in value]}}
        case _:
            return {"struct_value": {"fields": _wire_values(value)}}


def _wire_values(payload: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {key: _wire_value(value) for key, value in payload.items()}


def _wire_payload(payload: edge.Payload | None) -> dict[str, Any] | None:
    return None if payload is None else _wire_values(payload)


def engine_vectors(vectors: wire.Vectors, schema: VectorSchema) -> edge.Vector:
    """The vectors of a point, checked first: the engine applies a batch up to its first error."""
    match vectors.WhichOneof("vectors_options"):
        case "vector":
            return {"": _engine_vector("", vectors.vector, schema)}
        case "vectors":
            return {
                name: _engine_vector(name, vector, schema)
                for name, vector in vectors.vectors.vectors.items()
            }
        case _:
            raise BadInput("Expected some vectors")


def _engine_vector(name: str, vector: wire.Vector, schema: VectorSchema) -> NamedVector:
    match vector.WhichOneof("vector"):
        case "dense":
            return dense_vector(name, vector.dense, schema)
        case "sparse":
            return sparse_vector(name, vector.sparse, schema)
        case None:
            raise BadInput(f"Malformed vector {name}: neither dense nor sparse is set")
        case "multi_dense":
            raise Unserved("multivectors")
        case kind:
            raise Unserved(f"inference of a vector from a {kind}")


def dense_vector(name: str, vector: wire.DenseVector, schema: VectorSchema) -> list[float]:
    values = list(vector.data)
    schema.require_dense(name, values)
    return values


def sparse_vector(name: str, vector: wire.SparseVector, schema: VectorSchema) -> edge.SparseVector:
    indices, values = list(vector.indices), list(vector.values)
    schema.require_sparse(name, indices, values)
    return edge.SparseVector(indices, values)


def engine_point(point: wire.PointStruct, schema: VectorSchema) -> edge.Point:
    return edge.Point(
        id=engine_id(point.id),
        vector=engine_vectors(point.vectors, schema),
        payload=engine_payload(point.payload),
    )


def payload_selector(
    selector: wire.WithPayloadSelector, *, otherwise: bool
) -> bool | edge.PayloadSelector:
    match selector.WhichOneof("selector_options"):
        case "enable":
            return selector.enable
        case "include":
            return edge.PayloadSelector.Include(list(selector.include.fields))
        case "exclude":
            return edge.PayloadSelector.Exclude(list(selector.exclude.fields))
        case _:
            return otherwise


def vector_selector(selector: wire.WithVectorsSelector) -> bool | list[str]:
    if selector.WhichOneof("selector_options") == "include":
        return list(selector.include.names)
    return selector.enable


def retrieved_point(record: edge.Record) -> wire.RetrievedPoint:
    point = wire.RetrievedPoint(id=wire_id(record.id), payload=_wire_payload(record.payload))
    _fill_point(point, record)
    return point


def scored_point(scored: edge.ScoredPoint, *, with_vectors: bool) -> wire.ScoredPoint:
    """A hit; `with_vectors` because the engine leaves the vectors that MMR read in its hits."""
    point = wire.ScoredPoint(
        id=wire_id(scored.id),
        score=scored.score,
        version=scored.version,
        payload=_wire_payload(scored.payload),
    )
    _fill_point(point, scored, with_vectors=with_vectors)
    return point


def _fill_point(
    point: wire.RetrievedPoint | wire.ScoredPoint,
    found: edge.Record | edge.ScoredPoint,
    *,
    with_vectors: bool = True,
) -> None:
    if with_vectors and (vector := found.vector) is not None:
        _fill_vectors(point.vectors, vector)
    match found.order_value:
        case None:
            pass
        case int() as whole:
            point.order_value.int = whole
        case float() as fraction:
            point.order_value.float = fraction


def _fill_vectors(target: wire.VectorsOutput, vector: edge.Vector) -> None:
    if not isinstance(vector, dict):
        target.vector.dense.data.extend(cast("list[float]", vector))
        return
    target.vectors.SetInParent()
    for name, named in vector.items():
        output = target.vectors.vectors[name]
        if isinstance(named, edge.SparseVector):
            output.sparse.indices.extend(named.indices)
            output.sparse.values.extend(named.values)
        else:
            output.dense.data.extend(cast("list[float]", named))
