# ruff: noqa: ANN401 -- values of any JSON type are what is tested
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from grpc.aio import AioRpcError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client import grpc as wire

from tests.local.qdrant_node.conftest import Node

Call = Callable[[AsyncQdrantClient, str], Awaitable[Any]]

BAD = grpc.StatusCode.INVALID_ARGUMENT
MISSING = grpc.StatusCode.NOT_FOUND
UNSERVED = grpc.StatusCode.UNIMPLEMENTED


def upsert(vector: Any, identity: int | str = 1) -> Call:
    point = models.PointStruct(id=identity, vector=vector)
    return lambda client, name: client.upsert(name, [point])


def query(**arguments: Any) -> Call:
    return lambda client, name: client.query_points(name, **arguments)


def create(**arguments: Any) -> Call:
    return lambda client, name: client.create_collection(f"{name}-new", **arguments)


def scroll(condition: models.Condition, **more: Any) -> Call:
    return lambda client, name: client.scroll(name, models.Filter(must=[condition]), **more)


DENSE = models.VectorParams(size=2, distance=models.Distance.DOT)
FUSION = models.FusionQuery(fusion=models.Fusion.RRF)
GEO = models.GeoRadius(center=models.GeoPoint(lon=0, lat=0), radius=1)

TABLE: list[tuple[str, Call, grpc.StatusCode, str]] = [
    ("unknown collection", lambda client, _: client.scroll("none"), MISSING, "Collection `none`"),
    ("unknown collection's info", lambda c, _: c.get_collection("none"), MISSING, "`none` doesn't"),
    ("write to an unknown one", lambda c, _: c.delete("none", [1]), MISSING, "`none` doesn't"),
    (
        "name with a slash",
        lambda c, _: c.create_collection("a/b", DENSE),
        BAD,
        "cannot contain '/'",
    ),
    ("no vectors at all", create(vectors_config={}), UNSERVED, "collection without vectors"),
    (
        "size zero",
        create(
            vectors_config=models.VectorParams.model_construct(size=0, distance=models.Distance.DOT)
        ),
        BAD,
        "size must be from 1",
    ),
    (
        "multivectors",
        create(
            vectors_config=models.VectorParams(
                size=2,
                distance=models.Distance.DOT,
                multivector_config=models.MultiVectorConfig(
                    comparator=models.MultiVectorComparator.MAX_SIM
                ),
            )
        ),
        UNSERVED,
        "multivectors",
    ),
    (
        "custom sharding",
        create(vectors_config=DENSE, sharding_method=models.ShardingMethod.CUSTOM),
        UNSERVED,
        "custom sharding",
    ),
    (
        "a strict mode option that would not be enforced",
        create(
            vectors_config=DENSE,
            strict_mode_config=models.StrictModeConfig(enabled=True, max_query_limit=5),
        ),
        UNSERVED,
        "strict mode option max_query_limit",
    ),
    ("id that is no number or UUID", upsert({"dense": [1, 2]}, "1"), BAD, "parse UUID: 1"),
    ("wrong size", upsert({"dense": [1, 2, 3]}), BAD, "expected dim: 2, got 3"),
    ("unknown vector", upsert({"other": [1, 2]}), BAD, "Not existing vector name error: other"),
    ("unnamed vector", upsert([1, 2]), BAD, "Not existing vector name error"),
    ("NaN", upsert({"dense": [1, float("nan")]}), BAD, "not finite"),
    ("infinity", upsert({"dense": [1, float("inf")]}), BAD, "not finite"),
    (
        "NaN in a payload",
        lambda client, name: client.set_payload(name, {"a": [float("nan")]}, models.Filter()),
        BAD,
        "not finite",
    ),
    (
        "sparse vector with one index twice",
        upsert({"sparse": models.SparseVector(indices=[1, 1], values=[1, 2])}),
        BAD,
        "indices must be unique",
    ),
    (
        "sparse vector of uneven lengths",
        upsert({"sparse": models.SparseVector(indices=[1, 2], values=[1])}),
        BAD,
        "same length",
    ),
    (
        "sparse for dense",
        upsert({"dense": models.SparseVector(indices=[1], values=[1])}),
        BAD,
        "Wrong usage of sparse vectors",
    ),
    ("query of the wrong size", query(query=[1], using="dense"), BAD, "expected dim: 2, got 1"),
    ("query of no vector", query(query=[1, 2], using="none"), BAD, "vector name error: none"),
    ("query by a missing id", query(query=77, using="dense"), MISSING, "No point with id 77"),
    ("fusion of nothing", query(query=FUSION), BAD, "without prefetches"),
    (
        "prefetch without a query",
        query(prefetch=models.Prefetch(query=[1, 2], using="dense")),
        BAD,
        "prefetches",
    ),
    ("limit zero", query(query=[1, 2], using="dense", limit=0), BAD, "limit"),
    (
        "recommendation",
        query(
            query=models.RecommendQuery(recommend=models.RecommendInput(positive=[[1, 2]])),
            using="dense",
        ),
        UNSERVED,
        "query variant recommend",
    ),
    (
        "MMR over a sparse vector",
        query(
            query=models.NearestQuery(
                nearest=models.SparseVector(indices=[1], values=[1]), mmr=models.Mmr()
            ),
            using="sparse",
        ),
        UNSERVED,
        "MMR over a sparse vector",
    ),
    (
        "groups",
        lambda client, name: client.query_points_groups(name, "a", [1.0, 2.0], using="dense"),
        UNSERVED,
        "Points/QueryGroups",
    ),
    ("snapshots", lambda c, name: c.create_snapshot(name), UNSERVED, "Snapshots/Create"),
    ("shard keys", lambda c, name: c.create_shard_key(name, "k"), UNSERVED, "CreateShardKey"),
    (
        "a shard key in a request",
        lambda c, name: c.scroll(name, shard_key_selector="k"),
        UNSERVED,
        "shard keys",
    ),
    (
        "geo filter",
        scroll(models.FieldCondition(key="a", geo_radius=GEO)),
        UNSERVED,
        "filter condition geo_radius",
    ),
    ("path that is none", scroll(models.FieldCondition(key="a[", is_null=True)), BAD, "JSON path"),
    (
        "order without an index",
        lambda client, name: client.scroll(name, order_by="a"),
        BAD,
        "No range index",
    ),
    ("facet without an index", lambda c, name: c.facet(name, "a"), BAD, "No appropriate index"),
    (
        "update of what cannot be changed",
        lambda c, name: c.update_collection(name, hnsw_config=models.HnswConfigDiff(m=5)),
        UNSERVED,
        "update of a collection's hnsw_config",
    ),
    (
        "alias with a collection's name",
        lambda client, name: client.update_collection_aliases(
            [
                models.CreateAliasOperation(
                    create_alias=models.CreateAlias(collection_name=name, alias_name=name)
                )
            ]
        ),
        grpc.StatusCode.ALREADY_EXISTS,
        "already exists",
    ),
]


@pytest.mark.parametrize(
    ("call", "code", "words"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
async def test_a_refusal_has_its_code_and_words(
    client: AsyncQdrantClient, refusing: str, call: Call, code: grpc.StatusCode, words: str
) -> None:
    with pytest.raises(AioRpcError) as refused:
        await call(client, refusing)

    assert (refused.value.code(), words in (refused.value.details() or "")) == (code, True), (
        refused.value.details()
    )
    assert (await client.count(refusing)).count == 0
    assert not await client.collection_exists(f"{refusing}-new")


@pytest.fixture(scope="module")
def refusing(node: Node) -> str:
    client = node.blocking_client()
    client.create_collection(
        "refusing", {"dense": DENSE}, sparse_vectors_config={"sparse": models.SparseVectorParams()}
    )
    client.close()
    return "refusing"


EMPTY_REQUESTS = [
    wire.UpsertPoints(points=[wire.PointStruct()]),
    wire.UpsertPoints(points=[wire.PointStruct(id=wire.PointId(num=1))]),
    wire.DeletePoints(),
    wire.ScrollPoints(filter=wire.Filter(must=[wire.Condition()])),
    wire.ScrollPoints(
        filter=wire.Filter(must=[wire.Condition(field=wire.FieldCondition(key="a"))])
    ),
    wire.QueryPoints(query=wire.Query()),
    wire.QueryPoints(query=wire.Query(nearest=wire.VectorInput())),
    wire.UpdateBatchPoints(operations=[wire.PointsUpdateOperation()]),
    wire.CreateFieldIndexCollection(field_name="a"),
]


@pytest.mark.parametrize("request_", EMPTY_REQUESTS, ids=lambda one: type(one).__name__)
async def test_a_request_with_a_part_unset_is_bad_input(
    node: Node, refusing: str, request_: Any
) -> None:
    methods = {
        wire.UpsertPoints: "Upsert",
        wire.DeletePoints: "Delete",
        wire.ScrollPoints: "Scroll",
        wire.QueryPoints: "Query",
        wire.UpdateBatchPoints: "UpdateBatch",
        wire.CreateFieldIndexCollection: "CreateFieldIndex",
    }
    request_.collection_name = refusing
    async with grpc.aio.insecure_channel(f"127.0.0.1:{node.port}") as channel:
        stub: Any = wire.PointsStub
        with pytest.raises(AioRpcError) as refused:
            await getattr(stub(channel), methods[type(request_)])(request_)

    assert refused.value.code() == BAD
    assert (refused.value.details() or "").startswith("Wrong input: ")


async def test_a_long_message_is_cut_before_it_breaks_the_status(
    client: AsyncQdrantClient, refusing: str
) -> None:
    with pytest.raises(AioRpcError) as refused:
        await client.retrieve(refusing, ["x" * 50_000])

    assert refused.value.code() == BAD
    assert len(refused.value.details() or "") == 1_000
