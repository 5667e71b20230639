from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client.conversions.conversion import json_to_value

from chassis.errors import DataViolation
from corpus.fields import Fields, to_values
from corpus.points import to_payload
from tests.corpus.conftest import PASSAGE
from tests.corpus.payloads import fields, passage_in

NUMBERS = st.integers(-(2**63), 2**63 - 1)
SCALARS = st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False) | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["ordinal", "text", "kind", ""]), inner, max_size=3)
    ),
    max_leaves=5,
)
WRITTEN = st.recursive(
    NUMBERS | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_number(value: object) -> bool:
    return type(value) is int and value >= 0


def are(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(one, kind) for one in value)


def count(held: Fields, key: str) -> int:
    return len(held.parts(key))


@pytest.mark.parametrize(
    ("read", "right", "expected"),
    [
        (Fields.text, is_text, lambda value: value),
        (Fields.number, is_number, lambda value: value),
        (Fields.texts, are(str), tuple),
        (count, are(dict), len),
    ],
)
@given(value=VALUES | st.lists(st.text(max_size=2)) | st.lists(st.just({}) | st.just({"text": ""})))
def test_a_field_is_read_as_what_it_is_and_as_nothing_else(
    read: Callable[[Fields, str], object],
    right: Callable[[object], bool],
    expected: Callable[[object], object],
    value: object,
) -> None:
    held = fields("p", {"key": value})
    if right(value):
        assert read(held, "key") == expected(value)
        return
    with pytest.raises(DataViolation) as violation:
        read(held, "key")
    assert violation.value.metadata == {"point_id": "p", "field": "key"}


def test_a_part_has_fields_of_its_own() -> None:
    (part,) = fields("p", {"key": [{"text": "told", "number": 3}]}).parts("key")
    assert (part.text("text"), part.number("number")) == ("told", 3)
    with pytest.raises(DataViolation, match="point p: field kind is missing"):
        part.text("kind")


@pytest.mark.parametrize("read", [Fields.text, Fields.number, Fields.texts, Fields.parts])
def test_a_field_that_is_missing_is_a_violation(read: Callable[[Fields, str], object]) -> None:
    with pytest.raises(DataViolation, match="point p: field key is missing"):
        read(fields("p", {"other": "text"}), "key")


@given(st.dictionaries(st.text(max_size=3), WRITTEN, max_size=3))
def test_what_is_written_is_what_qdrants_client_would_write(payload: Mapping[str, Any]) -> None:
    assert to_values(payload) == {key: json_to_value(value) for key, value in payload.items()}


def test_a_passage_reads_as_it_was_written() -> None:
    assert passage_in("p", to_payload(PASSAGE)) == PASSAGE


@pytest.mark.parametrize("value", [None, True, 1.0, b"", [False], {"key": None}])
def test_what_no_payload_of_ours_holds_is_not_written(value: object) -> None:
    with pytest.raises(TypeError, match="no payload holds a"):
        to_values({"key": value})
