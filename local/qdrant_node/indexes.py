"""Payload indexes: from a request to what is kept, and to the engine."""

from __future__ import annotations  # the stubs' aliases do not exist at run time

from typing import Any

import qdrant_edge as edge
from google.protobuf.message import Message

from corpus.qdrant import wire
from local.qdrant_node.errors import BadInput, Unserved

_BY_PARAMS: dict[str, tuple[wire.PayloadSchemaType.ValueType, Any]] = {
    "keyword_index_params": (wire.Keyword, edge.KeywordIndexParams),
    "integer_index_params": (wire.Integer, edge.IntegerIndexParams),
    "float_index_params": (wire.Float, edge.FloatIndexParams),
    "geo_index_params": (wire.Geo, edge.GeoIndexParams),
    "text_index_params": (wire.Text, edge.TextIndexParams),
    "bool_index_params": (wire.Bool, edge.BoolIndexParams),
    "datetime_index_params": (wire.Datetime, edge.DatetimeIndexParams),
    "uuid_index_params": (wire.Uuid, edge.UuidIndexParams),
}


def index_declaration(request: wire.CreateFieldIndexCollection) -> wire.PayloadSchemaInfo:
    """The index that a request asks for: its parameters decide over its bare type."""
    if kind := request.field_index_params.WhichOneof("index_params"):
        data_type, _ = _BY_PARAMS[kind]
        return wire.PayloadSchemaInfo(data_type=data_type, params=request.field_index_params)
    if not request.HasField("field_type"):
        raise BadInput("field_type or field_index_params must be given")
    name = wire.FieldType.Name(request.field_type).removeprefix("FieldType")
    return wire.PayloadSchemaInfo(data_type=wire.PayloadSchemaType.Value(name))


def engine_schema(index: wire.PayloadSchemaInfo) -> Any:  # noqa: ANN401 -- the engine's union
    """The engine's `PayloadSchemaType` or `PayloadSchemaParams` for a kept index."""
    kind = index.params.WhichOneof("index_params")
    if kind is None:
        return getattr(edge.PayloadSchemaType, wire.PayloadSchemaType.Name(index.data_type))
    _, engine_class = _BY_PARAMS[kind]
    params: Message = getattr(index.params, kind)
    return engine_class(
        **{field.name: _argument(field.name, value) for field, value in params.ListFields()}
    )


def _argument(name: str, value: Any) -> Any:  # noqa: ANN401 -- a field of any parameters
    if name == "memory":
        return getattr(edge.Memory, wire.Memory.Name(value))
    if name == "tokenizer":
        return getattr(edge.TokenizerType, wire.TokenizerType.Name(value))
    if name == "prefix":
        return True
    if isinstance(value, Message):
        raise Unserved(f"payload index option {name}")
    return value
