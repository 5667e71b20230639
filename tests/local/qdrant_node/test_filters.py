# ruff: noqa: ANN401 -- values of any JSON type are what is tested
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models

from tests.local.qdrant_node.conftest import Node

ITEMS = [{"kind": "a", "count": 1}, {"kind": "b", "count": 5}]

PAYLOADS: dict[int, dict[str, Any]] = {
    1: {"v": 1},
    2: {"v": "1"},
    3: {"v": 0},
    4: {"v": True},
    5: {"v": [1, 2]},
    6: {"v": None},
    7: {},
    8: {"v": []},
    9: {"v": False},
    10: {"v": ["x", "y"]},
    11: {"v": [True, False]},
    12: {"at": "2026-03-01T12:00:00Z", "text": "the quick brown fox"},
    13: {"at": "2026-03-02T12:00:00+02:00", "text": "quickly done"},
    14: {"items": ITEMS},
    15: {"items": [{"kind": "a", "count": 5}]},
}


def match(key: str, value: Any) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def any_of(*values: Any) -> models.FieldCondition:
    return models.FieldCondition(key="v", match=models.MatchAny(any=list(values)))


def all_but(*values: Any) -> models.FieldCondition:
    return models.FieldCondition(key="v", match=models.MatchExcept(**{"except": list(values)}))


def between(**bounds: float) -> models.FieldCondition:
    return models.FieldCondition(key="v", range=models.Range(**bounds))


def at(**bounds: datetime) -> models.FieldCondition:
    return models.FieldCondition(key="at", range=models.DatetimeRange(**bounds))


def nested(*conditions: models.FieldCondition) -> models.NestedCondition:
    condition = models.Filter(must=list(conditions))
    return models.NestedCondition(nested=models.Nested(key="items", filter=condition))


TABLE: list[tuple[str, models.Filter, set[int]]] = [
    ("integer 1 is not '1' or true", models.Filter(must=[match("v", 1)]), {1, 5}),
    ("keyword '1' is not 1", models.Filter(must=[match("v", "1")]), {2}),
    ("true is not 1 or 'true'", models.Filter(must=[match("v", True)]), {4, 11}),
    ("false is not missing", models.Filter(must=[match("v", False)]), {9, 11}),
    ("a keyword matches inside a list", models.Filter(must=[match("v", "y")]), {10}),
    ("any integers", models.Filter(must=[any_of(2, 7)]), {5}),
    ("any keywords", models.Filter(must=[any_of("1", "x")]), {2, 10}),
    ("any of nothing is nothing", models.Filter(must=[any_of()]), set()),
    ("a range takes numbers only", models.Filter(must=[between(gte=1, lt=2)]), {1, 5}),
    ("a range's open ends", models.Filter(must=[between(gt=1)]), {5}),
    (
        "datetimes compare across time zones",
        models.Filter(must=[at(gt=datetime(2026, 3, 2, 9, 59, tzinfo=UTC))]),
        {13},
    ),
    (
        "a datetime's end is exclusive where asked",
        models.Filter(must=[at(lt=datetime(2026, 3, 2, 10, tzinfo=UTC))]),
        {12},
    ),
    (
        "words of a text",
        models.Filter(
            must=[models.FieldCondition(key="text", match=models.MatchText(text="fox quick"))]
        ),
        {12},
    ),
    (
        "empty means missing, null or []",
        models.Filter(must=[models.IsEmptyCondition(is_empty=models.PayloadField(key="v"))]),
        {6, 7, 8, 12, 13, 14, 15},
    ),
    (
        "null is null only",
        models.Filter(must=[models.IsNullCondition(is_null=models.PayloadField(key="v"))]),
        {6},
    ),
    (
        "a field condition on emptiness",
        models.Filter(must=[models.FieldCondition(key="v", is_empty=False)]),
        {1, 2, 3, 4, 5, 9, 10, 11},
    ),
    (
        "ids",
        models.Filter(must=[models.HasIdCondition(has_id=[3, 5, 99])]),
        {3, 5},
    ),
    ("no ids is nothing", models.Filter(must=[models.HasIdCondition(has_id=[])]), set()),
    (
        "a vector that is there",
        models.Filter(must=[models.HasVectorCondition(has_vector="dense")]),
        {1},
    ),
    (
        "counts of values",
        models.Filter(
            must=[models.FieldCondition(key="v", values_count=models.ValuesCount(gte=2))]
        ),
        {5, 10, 11},
    ),
    (
        "nested conditions hold on one element",
        models.Filter(must=[nested(match("kind", "a"), match("count", 5))]),
        {15},
    ),
    (
        "flat conditions may hold on different elements",
        models.Filter(must=[match("items[].kind", "a"), match("items[].count", 5)]),
        {14, 15},
    ),
    ("should is any", models.Filter(should=[match("v", 1), match("v", "1")]), {1, 2, 5}),
    (
        "must_not is none",
        models.Filter(must_not=[match("v", 1), match("v", "1")]),
        set(PAYLOADS) - {1, 2, 5},
    ),
    (
        "min_should counts",
        models.Filter(
            min_should=models.MinShould(
                conditions=[match("v", 1), match("v", 2), match("v", "1")], min_count=2
            )
        ),
        {5},
    ),
    (
        "filters nest",
        models.Filter(
            must=[models.Filter(should=[match("v", 1), match("v", True)])],
            must_not=[models.Filter(must=[match("v", 2)])],
        ),
        {1, 4, 11},
    ),
    ("an empty should is everything", models.Filter(should=[]), set(PAYLOADS)),
    ("an empty filter is everything", models.Filter(), set(PAYLOADS)),
    (
        "except also returns what holds another value besides",
        models.Filter(must=[all_but(1), any_of(1, 2)]),
        {5},
    ),
]


@pytest.fixture(scope="module")
def client(node: Node) -> Iterator[QdrantClient]:
    unmodified = node.blocking_client()
    yield unmodified
    unmodified.close()


@pytest.fixture(scope="module")
def collections(client: QdrantClient) -> list[str]:
    """The same points without payload indexes, and with an index of each type on the field."""
    names = ["filters-plain", "filters-keyword", "filters-integer", "filters-bool"]
    for name in names:
        client.create_collection(
            name,
            vectors_config={"dense": models.VectorParams(size=1, distance=models.Distance.DOT)},
        )
        client.upsert(
            name,
            [
                models.PointStruct(
                    id=identity, vector={"dense": [1]} if identity == 1 else {}, payload=payload
                )
                for identity, payload in PAYLOADS.items()
            ],
        )
    for name in names[1:]:
        client.create_payload_index(name, "v", models.PayloadSchemaType(name.split("-")[1]))
        client.create_payload_index(name, "at", models.PayloadSchemaType.DATETIME)
        client.create_payload_index(name, "text", models.PayloadSchemaType.TEXT)
    return names


@pytest.mark.parametrize(
    ("condition", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_filter_selects(
    client: QdrantClient, collections: list[str], condition: models.Filter, expected: set[int]
) -> None:
    for name in collections:
        found = {record.id for record in client.scroll(name, condition, limit=100)[0]}
        assert found == expected, name
        assert client.count(name, condition).count == len(expected), name


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (None, []),
        (models.PayloadSchemaType.KEYWORD, []),
        (models.PayloadSchemaType.INTEGER, [1]),
    ],
)
def test_a_whole_float_is_an_integer_only_to_an_integer_index(
    client: QdrantClient, name: str, index: models.PayloadSchemaType | None, expected: list[int]
) -> None:
    client.create_collection(
        name, vectors_config=models.VectorParams(size=1, distance=models.Distance.DOT)
    )
    client.upsert(name, [models.PointStruct(id=1, vector={}, payload={"v": 1.0})])
    if index:
        client.create_payload_index(name, "v", index)

    records, _ = client.scroll(name, models.Filter(must=[match("v", 1)]))

    assert [record.id for record in records] == expected
    assert client.retrieve(name, [1])[0].payload == {"v": 1.0}


KEYS = st.sampled_from(["a", "b"])
SCALARS = st.one_of(
    st.integers(0, 2),
    st.sampled_from(["0", "1", "x"]),
    st.sampled_from([0.0, 1.0, 1.5]),
    st.booleans(),
    st.none(),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3))
DOCUMENTS = st.lists(st.dictionaries(KEYS, VALUES, max_size=2), min_size=1, max_size=8)
LEAVES = st.one_of(
    st.builds(match, KEYS, st.one_of(st.integers(0, 2), st.sampled_from(["0", "1", "x"]))),
    st.builds(match, KEYS, st.booleans()),
)


def filters(conditions: st.SearchStrategy[Any]) -> st.SearchStrategy[models.Filter]:
    lists = st.lists(conditions, max_size=3)
    return st.builds(models.Filter, must=lists, should=lists, must_not=lists)


FILTERS = filters(st.one_of(LEAVES, filters(LEAVES)))


def holds(condition: Any, payload: dict[str, Any]) -> bool:
    """What Qdrant documents, over one payload: values match with their own type only."""
    if isinstance(condition, models.FieldCondition):
        assert isinstance(condition.match, models.MatchValue)
        wanted = condition.match.value
        value = payload.get(condition.key)
        values = value if isinstance(value, list) else [value]
        return any(type(one) is type(wanted) and one == wanted for one in values)
    must, should = condition.must or [], condition.should or []
    return (
        all(holds(one, payload) for one in must)
        and (not should or any(holds(one, payload) for one in should))
        and not any(holds(one, payload) for one in condition.must_not or [])
    )


def indexed_integer(value: Any) -> Any:
    """A value as an integer index sees it: whole floats are integers."""
    if isinstance(value, list):
        return [indexed_integer(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.fixture(scope="module")
def rewritten(client: QdrantClient) -> dict[str, str]:
    """Collections whose points a test may replace: unindexed, and indexed by two types."""
    vectors = {"dense": models.VectorParams(size=1, distance=models.Distance.DOT)}
    names = {kind: f"rewritten-{kind}" for kind in ("plain", "indexed")}
    for name in names.values():
        client.create_collection(name, vectors_config=vectors)
    client.create_payload_index(names["indexed"], "a", models.PayloadSchemaType.KEYWORD)
    client.create_payload_index(names["indexed"], "b", models.PayloadSchemaType.INTEGER)
    return names


@given(documents=DOCUMENTS, condition=FILTERS)
@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_filter_selects_what_plain_evaluation_selects(
    client: QdrantClient,
    rewritten: dict[str, str],
    documents: list[dict[str, Any]],
    condition: models.Filter,
) -> None:
    points = [
        models.PointStruct(id=number, vector={}, payload=payload)
        for number, payload in enumerate(documents)
    ]
    seen = {
        "plain": documents,
        "indexed": [{**payload, "b": indexed_integer(payload.get("b"))} for payload in documents],
    }
    for kind, name in rewritten.items():
        client.delete(name, models.Filter())
        client.upsert(name, points)
        found = [record.id for record in client.scroll(name, condition)[0]]
        payloads = enumerate(seen[kind])
        assert found == [number for number, payload in payloads if holds(condition, payload)], kind
