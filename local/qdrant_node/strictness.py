"""Strict mode: filters that name a field without a fitting payload index are refused."""

from __future__ import annotations  # the stubs' aliases do not exist at run time

from collections.abc import Iterator
from typing import TypeAlias

from google.protobuf.message import Message

from corpus.qdrant import wire
from local.qdrant_node.catalogue import Entry
from local.qdrant_node.errors import BadInput

_Kinds: TypeAlias = "set[wire.PayloadSchemaType.ValueType]"

_FITTING: dict[str, _Kinds] = {
    "keyword": {wire.Keyword, wire.Uuid},
    "keywords": {wire.Keyword, wire.Uuid},
    "except_keywords": {wire.Keyword, wire.Uuid},
    "prefix": {wire.Keyword},
    "substring": {wire.Keyword},
    "integer": {wire.Integer},
    "integers": {wire.Integer},
    "except_integers": {wire.Integer},
    "boolean": {wire.Bool},
    "text": {wire.Text},
    "text_any": {wire.Text},
    "phrase": {wire.Text},
    "range": {wire.Integer, wire.Float},
    "datetime_range": {wire.Datetime},
}
_ANY: _Kinds = set(wire.PayloadSchemaType.values())


def require_indexed(request: Message, entry: Entry, option: str) -> None:
    """Refuse a request one of whose filters, at any depth, needs an index that is not there.

    Only where the collection's strict mode is on and turns the option off; unset means allowed.
    """
    strict = {field.name: value for field, value in entry.config.strict_mode_config.ListFields()}
    if not strict.get("enabled") or strict.get(option, True):
        return
    for condition in _filters(request):
        for key, fitting in _needs(condition, ""):
            if key not in entry.indexes or entry.indexes[key].data_type not in fitting:
                raise BadInput(f'Index required but not found for "{key}"{_wanted(fitting)}')


def _wanted(fitting: _Kinds) -> str:
    if fitting == _ANY:
        return ""
    names = sorted(wire.PayloadSchemaType.Name(kind).lower() for kind in fitting)
    return f" of one of the following types: [{', '.join(names)}]"


def _filters(message: Message) -> Iterator[wire.Filter]:
    """The outermost filters inside a request."""
    if isinstance(message, wire.Filter):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for inner in (value,) if isinstance(value, Message) else value:
            yield from _filters(inner)


def _needs(condition: wire.Filter, path: str) -> Iterator[tuple[str, _Kinds]]:
    """The fields a filter names, each with the index types that serve the condition on it."""
    minimum = condition.min_should.conditions
    for part in (*condition.must, *condition.should, *condition.must_not, *minimum):
        match part.WhichOneof("condition_one_of"):
            case "field":
                yield path + part.field.key, _field_needs(part.field)
            case "is_empty":
                yield path + part.is_empty.key, _ANY
            case "is_null":
                yield path + part.is_null.key, _ANY
            case "filter":
                yield from _needs(part.filter, path)
            case "nested":
                yield from _needs(part.nested.filter, f"{path}{part.nested.key}[].")


def _field_needs(field: wire.FieldCondition) -> _Kinds:
    kinds = {descriptor.name for descriptor, _ in field.ListFields()}
    if "match" in kinds:
        return _FITTING.get(field.match.WhichOneof("match_value") or "", _ANY)
    return next((_FITTING[kind] for kind in kinds if kind in _FITTING), _ANY)
