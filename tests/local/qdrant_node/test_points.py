import uuid
from typing import Any

import grpc
import pytest
from grpc.aio import AioRpcError
from qdrant_client import AsyncQdrantClient, models

PAYLOADS: list[dict[str, Any]] = [{"n": 0, "a": "x"}, {"n": 1, "a": "y"}, {"n": 2, "a": "x"}]


@pytest.fixture
async def collection(client: AsyncQdrantClient, name: str) -> str:
    await client.create_collection(
        name,
        vectors_config={"dense": models.VectorParams(size=2, distance=models.Distance.DOT)},
        sparse_vectors_config={"sparse": models.SparseVectorParams()},
    )
    await client.upsert(
        name,
        [
            models.PointStruct(
                id=number,
                vector={
                    "dense": [1, number],
                    "sparse": models.SparseVector(indices=[number, 9], values=[0.5, 1]),
                },
                payload=payload,
            )
            for number, payload in enumerate(PAYLOADS)
        ],
    )
    return name


async def test_a_point_comes_back_as_it_was_written(
    client: AsyncQdrantClient, collection: str
) -> None:
    identity = str(uuid.uuid4())
    payload = {
        "text": "größe \u2028 \U0001f600",
        "whole": 2**63 - 1,
        "negative": -(2**63),
        "real": 1.0,
        "flag": True,
        "nothing": None,
        "empty": [],
        "object": {"inner": [1, "a", {"deep": False}], "none": {}},
    }
    sparse = models.SparseVector(indices=[7, 3], values=[0.25, 2])
    await client.upsert(
        collection,
        [
            models.PointStruct(
                id=identity, vector={"dense": [0.5, -2], "sparse": sparse}, payload=payload
            )
        ],
    )

    [record] = await client.retrieve(collection, [identity], with_vectors=True)

    assert record.id == identity
    assert record.payload == payload
    assert {key: type(value) for key, value in (record.payload or {}).items()} == {
        key: type(value) for key, value in payload.items()
    }
    assert isinstance(record.vector, dict)
    assert record.vector["dense"] == [0.5, -2]
    assert isinstance(record.vector["sparse"], models.SparseVector)
    stored = record.vector["sparse"]
    assert dict(zip(stored.indices, stored.values, strict=True)) == {3: 2, 7: 0.25}


async def test_the_unnamed_vector_comes_back_unnamed(client: AsyncQdrantClient, name: str) -> None:
    await client.create_collection(
        name, vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT)
    )
    await client.upsert(name, [models.PointStruct(id=1, vector=[1, 2])])

    [record] = await client.retrieve(name, [1], with_vectors=True)
    [hit] = (await client.query_points(name, [3.0, 4.0])).points

    assert record.vector == [1, 2]
    assert hit.score == 11


async def test_ids_that_are_not_there_are_left_out(
    client: AsyncQdrantClient, collection: str
) -> None:
    records = await client.retrieve(collection, [2, 77, 0])

    assert [record.id for record in records] == [2, 0]


async def test_selectors_decide_which_payload_and_vectors_come_back(
    client: AsyncQdrantClient, collection: str
) -> None:
    [included] = await client.retrieve(collection, [1], ["a"], with_vectors=["dense"])
    [excluded] = await client.retrieve(
        collection, [1], models.PayloadSelectorExclude(exclude=["a"])
    )
    [bare] = await client.retrieve(collection, [1], with_payload=False)

    assert (included.payload, included.vector) == ({"a": "y"}, {"dense": [1, 1]})
    assert (excluded.payload, excluded.vector) == ({"n": 1}, None)
    assert not bare.payload


async def test_scroll_visits_every_point_once_in_pages(
    client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(
        name, vectors_config={"dense": models.VectorParams(size=1, distance=models.Distance.DOT)}
    )
    identities = [uuid.uuid5(uuid.NAMESPACE_OID, str(number)) for number in range(1_000)]
    await client.upsert(
        name,
        [
            models.PointStruct(id=str(identity), vector={"dense": [1]}, payload={"n": number})
            for number, identity in enumerate(identities)
        ],
    )

    pages: list[list[str]] = []
    offset: Any = None
    while True:
        records, offset = await client.scroll(name, limit=150, offset=offset, with_payload=False)
        pages.append([str(record.id) for record in records])
        if offset is None:
            break

    assert [len(page) for page in pages] == [150] * 6 + [100]
    assert sorted(one for page in pages for one in page) == sorted(
        str(identity) for identity in identities
    )


async def test_scroll_orders_by_an_indexed_field(
    client: AsyncQdrantClient, collection: str
) -> None:
    await client.create_payload_index(collection, "n", models.PayloadSchemaType.INTEGER)

    falling, _ = await client.scroll(
        collection, order_by=models.OrderBy(key="n", direction=models.Direction.DESC)
    )
    started, _ = await client.scroll(collection, order_by=models.OrderBy(key="n", start_from=1))

    assert [(record.id, record.order_value) for record in falling] == [(2, 2), (1, 1), (0, 0)]
    assert [record.id for record in started] == [1, 2]


async def test_an_upsert_replaces_a_point_whole(client: AsyncQdrantClient, collection: str) -> None:
    await client.upsert(
        collection, [models.PointStruct(id=1, vector={"dense": [5, 5]}, payload={"b": 1})]
    )

    [record] = await client.retrieve(collection, [1], with_vectors=True)
    assert (record.payload, record.vector) == ({"b": 1}, {"dense": [5, 5]})
    assert (await client.count(collection)).count == 3


async def test_an_upsert_with_one_bad_point_writes_none(
    client: AsyncQdrantClient, collection: str
) -> None:
    points = [
        models.PointStruct(id=50, vector={"dense": [1, 2]}),
        models.PointStruct(id=51, vector={"dense": [1, 2, 3]}),
    ]

    with pytest.raises(AioRpcError, match="expected dim: 2, got 3"):
        await client.upsert(collection, points)

    assert (await client.count(collection)).count == 3


async def test_deletes_by_ids_and_by_filter(client: AsyncQdrantClient, collection: str) -> None:
    await client.delete(collection, [0, 77])
    assert await _payloads(client, collection) == {1: PAYLOADS[1], 2: PAYLOADS[2]}

    await client.delete(collection, _where("a", "x"))
    assert await _payloads(client, collection) == {1: PAYLOADS[1]}


async def test_payload_is_set_overwritten_deleted_and_cleared_by_ids(
    client: AsyncQdrantClient, collection: str
) -> None:
    await client.set_payload(collection, {"b": 1, "a": "z"}, [0])
    await client.set_payload(collection, {"deep": 2}, [0], key="o.p")
    await client.overwrite_payload(collection, {"only": True}, [1])
    await client.delete_payload(collection, ["a"], [2])
    assert await _payloads(client, collection) == {
        0: {"n": 0, "a": "z", "b": 1, "o": {"p": {"deep": 2}}},
        1: {"only": True},
        2: {"n": 2},
    }

    await client.clear_payload(collection, [0])
    assert (await _payloads(client, collection))[0] == {}


async def test_payload_is_set_overwritten_deleted_and_cleared_by_filter(
    client: AsyncQdrantClient, collection: str
) -> None:
    await client.set_payload(collection, {"b": 1}, _where("a", "x"))
    await client.overwrite_payload(collection, {"only": True}, _where("a", "y"))
    await client.delete_payload(collection, ["n"], _where("n", 2))
    assert await _payloads(client, collection) == {
        0: {"n": 0, "a": "x", "b": 1},
        1: {"only": True},
        2: {"a": "x", "b": 1},
    }

    await client.clear_payload(collection, models.FilterSelector(filter=_where("b", 1)))
    assert await _payloads(client, collection) == {0: {}, 1: {"only": True}, 2: {}}


async def test_vectors_are_updated_and_deleted_alone(
    client: AsyncQdrantClient, collection: str
) -> None:
    await client.update_vectors(collection, [models.PointVectors(id=0, vector={"dense": [8, 8]})])
    await client.delete_vectors(collection, ["sparse"], [0])
    await client.delete_vectors(collection, ["dense"], _where("a", "y"))

    first, second = await client.retrieve(collection, [0, 1], with_vectors=True)
    assert (first.payload, first.vector) == (PAYLOADS[0], {"dense": [8, 8]})
    assert isinstance(second.vector, dict)
    assert second.vector.keys() == {"sparse"}


async def test_conditions_and_modes_decide_what_an_upsert_may_touch(
    client: AsyncQdrantClient, collection: str
) -> None:
    def point(identity: int) -> models.PointStruct:
        return models.PointStruct(id=identity, vector={}, payload={"new": True})

    await client.upsert(collection, [point(0)], update_filter=_where("a", "other"))
    await client.upsert(
        collection, [point(1), point(10)], update_mode=models.UpdateMode.INSERT_ONLY
    )
    await client.upsert(
        collection, [point(2), point(11)], update_mode=models.UpdateMode.UPDATE_ONLY
    )

    assert await _payloads(client, collection) == {
        0: PAYLOADS[0],
        1: PAYLOADS[1],
        2: {"new": True},
        10: {"new": True},
    }


async def test_a_batch_applies_its_operations_in_order(
    client: AsyncQdrantClient, collection: str
) -> None:
    results = await client.batch_update_points(
        collection,
        [
            models.UpsertOperation(
                upsert=models.PointsList(
                    points=[models.PointStruct(id=5, vector={"dense": [1, 1]}, payload={"c": 1})]
                )
            ),
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload={"d": 2}, points=[5, 0])
            ),
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(payload={"e": 3}, filter=_where("a", "y"))
            ),
            models.DeletePayloadOperation(
                delete_payload=models.DeletePayload(keys=["c"], points=[5])
            ),
            models.ClearPayloadOperation(clear_payload=models.PointIdsList(points=[0])),
            models.UpdateVectorsOperation(
                update_vectors=models.UpdateVectors(
                    points=[models.PointVectors(id=5, vector={"dense": [4, 4]})]
                )
            ),
            models.DeleteVectorsOperation(
                delete_vectors=models.DeleteVectors(points=[0], vector=["dense"])
            ),
            models.DeleteOperation(delete=models.FilterSelector(filter=_where("a", "x"))),
        ],
    )

    assert [result.status for result in results] == [models.UpdateStatus.COMPLETED] * 8
    assert await _payloads(client, collection) == {0: {}, 1: {"e": 3}, 5: {"d": 2}}
    first, last = await client.retrieve(collection, [0, 5], with_vectors=["dense"])
    assert (first.vector, last.vector) == ({}, {"dense": [4, 4]})


async def test_facets_count_the_values_of_an_indexed_field(
    client: AsyncQdrantClient, collection: str
) -> None:
    await client.create_payload_index(collection, "a", models.PayloadSchemaType.KEYWORD)
    await client.create_payload_index(collection, "n", models.PayloadSchemaType.INTEGER)

    texts = await client.facet(collection, "a")
    numbers = await client.facet(collection, "n", facet_filter=_where("a", "x"), limit=5)

    assert [(hit.value, hit.count) for hit in texts.hits] == [("x", 2), ("y", 1)]
    assert {hit.value for hit in numbers.hits} == {0, 2}


async def test_writing_a_payload_to_a_missing_point_is_refused(
    client: AsyncQdrantClient, collection: str
) -> None:
    with pytest.raises(AioRpcError, match="No point with id 99") as failure:
        await client.set_payload(collection, {"a": 1}, [99])

    assert failure.value.code() == grpc.StatusCode.NOT_FOUND


def _where(key: str, value: str | int) -> models.Filter:
    return models.Filter(
        must=[models.FieldCondition(key=key, match=models.MatchValue(value=value))]
    )


async def _payloads(
    client: AsyncQdrantClient, collection: str
) -> dict[models.ExtendedPointId, dict[str, Any] | None]:
    return {record.id: record.payload for record in (await client.scroll(collection))[0]}
