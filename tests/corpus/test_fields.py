from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import grpc
from qdrant_client.conversions.conversion import json_to_value

from chassis.errors import DataViolation
from corpus.fields import Fields, PlainFields, WireFields
from corpus.points import Key, from_fields, from_payload, to_payload
from tests.corpus.conftest import PASSAGE

KEYS = [key.value for key in Key]
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


def wired(payload: dict[str, Any]) -> WireFields:
    """As it comes from Qdrant."""
    values = {key: json_to_value(value) for key, value in payload.items()}
    sent = grpc.RetrievedPoint(payload=values).SerializeToString()
    return WireFields("p", grpc.RetrievedPoint.FromString(sent).payload)


def judged(read: Callable[[], object]) -> object:
    try:
        return read()
    except DataViolation as violation:
        return violation.message


def test_a_passage_reads_alike_from_the_wire() -> None:
    assert from_fields(wired(to_payload(PASSAGE))) == PASSAGE


@given(st.sampled_from(KEYS), VALUES)
def test_what_is_spoiled_is_judged_alike_from_the_wire(key: str, value: object) -> None:
    payload = {**to_payload(PASSAGE), key: value}
    assert judged(lambda: from_fields(wired(payload))) == judged(lambda: from_payload("p", payload))


@given(st.sampled_from(sorted(to_payload(PASSAGE)["blocks"][0])), VALUES)
def test_a_spoiled_block_is_judged_alike_from_the_wire(key: str, value: object) -> None:
    payload = to_payload(PASSAGE)
    payload["blocks"][1][key] = value
    assert judged(lambda: from_fields(wired(payload))) == judged(lambda: from_payload("p", payload))


@pytest.mark.parametrize("key", KEYS)
def test_what_is_missing_is_judged_alike_from_the_wire(key: str) -> None:
    payload = to_payload(PASSAGE)
    del payload[key]
    assert judged(lambda: from_fields(wired(payload))) == judged(lambda: from_payload("p", payload))


READERS: list[Callable[[Fields], object]] = [
    lambda fields: fields.text("key"),
    lambda fields: fields.number("key"),
    lambda fields: fields.texts("key"),
    lambda fields: [part.text("text") for part in fields.parts("key")],
]


@given(st.sampled_from(READERS), VALUES)
def test_every_kind_of_field_is_judged_alike_from_the_wire(
    read: Callable[[Fields], object], value: object
) -> None:
    plain, wire = PlainFields("p", {"key": value}), wired({"key": value})
    assert judged(lambda: read(wire)) == judged(lambda: read(plain))
