from collections.abc import Callable

import pytest

from chassis.errors import DataViolation
from corpus.points import Key, StoredPassage, point_id, to_payload
from tests.corpus.payloads import passage_in

Build = Callable[..., StoredPassage]
READ = [key.value for key in Key if key is not Key.RETIRED_AT]


def test_a_passage_survives_its_payload(passage: Build) -> None:
    for groups in [(), ("sre", "dba")]:
        stored = passage(groups=groups)
        assert passage_in("p", to_payload(stored)) == stored


def test_a_document_without_groups_is_marked_for_everybody(passage: Build) -> None:
    assert to_payload(passage())["groups"] == ["*"]


@pytest.mark.parametrize("field", READ)
def test_a_missing_field_is_a_violation_that_names_point_and_field(
    field: str, passage: Build
) -> None:
    payload = to_payload(passage())
    del payload[field]
    with pytest.raises(DataViolation, match=f"point p: field {field} ") as violation:
        passage_in("p", payload)
    assert violation.value.metadata == {"point_id": "p", "field": field}


@pytest.mark.parametrize("field", READ)
@pytest.mark.parametrize("value", [None, True, 1.0, -1, {"a": 1}, [1, 2], [[]]])
def test_a_value_of_the_wrong_type_is_a_violation(
    field: str, value: object, passage: Build
) -> None:
    with pytest.raises(DataViolation, match=field):
        passage_in("p", {**to_payload(passage()), field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tenant_id", ""),
        ("tenant_id", 1),
        ("chunk", "1"),
        ("access_level", "secret"),
        ("access_level", 2),
        ("publication_state", "gone"),
        ("groups", []),
        ("groups", ["*", "sre"]),
        ("groups", "*"),
        ("blocks", []),
        ("blocks", ["text"]),
        ("blocks", [{"ordinal": 0}]),
    ],
)
def test_a_value_outside_what_is_allowed_is_a_violation(
    field: str, value: object, passage: Build
) -> None:
    with pytest.raises(DataViolation, match=f"point p: field {field}|field piece"):
        passage_in("p", {**to_payload(passage()), field: value})


def test_a_point_without_payload_is_a_violation() -> None:
    with pytest.raises(DataViolation, match="point p"):
        passage_in("p", None)


def test_ids_differ_by_everything_that_identifies_a_chunk(passage: Build) -> None:
    changed = [
        passage(),
        passage(tenant="other"),
        passage(document_id="other"),
        passage(chunking_version="other"),
        passage(revision="other"),
    ]
    ids = {point_id(stored, "0") for stored in changed} | {point_id(passage(), "1")}
    assert len(ids) == 6


def test_an_id_does_not_depend_on_where_the_chunk_is_published(passage: Build) -> None:
    assert point_id(passage(valid_from=1), "0") == point_id(passage(valid_from=9), "0")


def test_the_text_shows_what_must_be_read_before_a_piece(passage: Build) -> None:
    assert passage().text == "Free the disk.\n\n| x | y |\n|---|---|\n| a | b |"
