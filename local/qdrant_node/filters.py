"""Filters, from the wire to the engine."""

from __future__ import annotations  # the stubs' aliases do not exist at run time

from collections.abc import Iterable
from functools import lru_cache
from typing import cast

import numpy as np
import qdrant_edge as edge

from corpus.qdrant import wire
from local.qdrant_node.errors import BadInput, Unserved
from local.qdrant_node.points import engine_ids

_REMEMBERED_BYTES = 4_096

Filtered = (
    wire.ScrollPoints | wire.CountPoints | wire.QueryPoints | wire.PrefetchQuery | wire.FacetCounts
)


def optional_filter(request: Filtered) -> edge.Filter | None:
    return engine_filter(request.filter) if request.HasField("filter") else None


def engine_filter(condition: wire.Filter) -> edge.Filter:
    """The engine's filter. As in Qdrant, a filter without any condition matches every point.

    A reader sends the same one with every query, and making it takes longer than the search.
    """
    if condition.ByteSize() > _REMEMBERED_BYTES:
        return _made(condition)
    return _remembered(condition.SerializeToString())


@lru_cache(maxsize=512)
def _remembered(serialized: bytes) -> edge.Filter:
    return _made(wire.Filter.FromString(serialized))


def _made(condition: wire.Filter) -> edge.Filter:
    # An empty list is not the same as none: inside a nested condition it would match nothing.
    return edge.Filter(
        must=_conditions(condition.must) or None,
        should=_conditions(condition.should) or None,
        must_not=_conditions(condition.must_not) or None,
        min_should=_min_should(condition),
    )


def _min_should(condition: wire.Filter) -> edge.MinShould | None:
    if not condition.HasField("min_should"):
        return None
    return edge.MinShould(
        _conditions(condition.min_should.conditions), condition.min_should.min_count
    )


def _conditions(conditions: Iterable[wire.Condition]) -> list[edge.ConditionType]:
    return [_condition(condition) for condition in conditions]


def _condition(condition: wire.Condition) -> edge.ConditionType:  # noqa: PLR0911 -- as `_match`
    match condition.WhichOneof("condition_one_of"):
        case "field":
            return _field(condition.field)
        case "filter":
            return engine_filter(condition.filter)
        case "has_id":
            return edge.HasIdCondition(set(engine_ids(condition.has_id.has_id)))
        case "is_empty":
            return edge.IsEmptyCondition(condition.is_empty.key)
        case "is_null":
            return edge.IsNullCondition(condition.is_null.key)
        case "nested":
            return edge.NestedCondition(
                condition.nested.key, engine_filter(condition.nested.filter)
            )
        case "has_vector":
            return edge.HasVectorCondition(condition.has_vector.has_vector)
        case None:
            raise BadInput("Malformed Condition type: none is set")
        case kind:
            raise Unserved(f"filter condition {kind}")


def _field(field: wire.FieldCondition) -> edge.FieldCondition:
    given = {descriptor.name for descriptor, _ in field.ListFields()} - {"key"}
    if unserved := sorted(name for name in given if name.startswith("geo_")):
        raise Unserved(f"filter condition {unserved[0]}")
    if not given:
        raise BadInput(f"Malformed field condition on {field.key}: no condition is set")
    if {"range", "datetime_range"} <= given:
        raise BadInput(f"Field condition on {field.key} has both range and datetime_range")
    return edge.FieldCondition(
        field.key,
        match=_match(field.match) if "match" in given else None,
        range=_range(field),
        values_count=_values_count(field.values_count) if "values_count" in given else None,
        is_empty=field.is_empty if "is_empty" in given else None,
        is_null=field.is_null if "is_null" in given else None,
    )


def _match(match: wire.Match) -> edge.MatchType:  # noqa: C901, PLR0911, PLR0912 -- a line a kind
    match match.WhichOneof("match_value"):
        case "keyword":
            return edge.MatchValue(match.keyword)
        case "integer":
            return edge.MatchValue(match.integer)
        case "boolean":
            # The engine tries integers first and takes Python's True for 1, which matches nothing.
            # NumPy's booleans are no integers, so that they arrive as what they are.
            return edge.MatchValue(cast("bool", np.bool_(match.boolean)))
        case "keywords":
            return edge.MatchAny(list(match.keywords.strings))
        case "integers":
            return edge.MatchAny(list(match.integers.integers))
        case "except_keywords":
            return edge.MatchExcept(list(match.except_keywords.strings))
        case "except_integers":
            return edge.MatchExcept(list(match.except_integers.integers))
        case "text":
            return edge.MatchText(match.text)
        case "text_any":
            return edge.MatchTextAny(match.text_any)
        case "phrase":
            return edge.MatchPhrase(match.phrase)
        case "prefix":
            return edge.MatchPrefix(match.prefix)
        case "substring":
            return edge.MatchSubstring(match.substring)
        case _:
            raise BadInput("Malformed Match condition: no value is set")


def _range(field: wire.FieldCondition) -> edge.RangeFloat | edge.RangeDateTime | None:
    if field.HasField("range"):
        return edge.RangeFloat(**{bound.name: value for bound, value in field.range.ListFields()})
    if field.HasField("datetime_range"):
        bounds = field.datetime_range.ListFields()
        return edge.RangeDateTime(**{bound.name: time.ToJsonString() for bound, time in bounds})
    return None


def _values_count(count: wire.ValuesCount) -> edge.ValuesCount:
    return edge.ValuesCount(**{bound.name: value for bound, value in count.ListFields()})
