import asyncio

import grpc
import pytest
from grpc.aio import AioRpcError
from qdrant_client import AsyncQdrantClient, models

DENSE = {"dense": models.VectorParams(size=3, distance=models.Distance.COSINE)}
BM25 = {"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)}


async def test_a_created_collection_reports_exactly_its_contract(
    client: AsyncQdrantClient, name: str
) -> None:
    metadata = {"profile": "multilingual-e5-small", "size": 3, "parts": [1, None, {"a": 1.5}]}
    assert await client.create_collection(
        name,
        vectors_config={
            **DENSE,
            "other": models.VectorParams(
                size=5, distance=models.Distance.DOT, datatype=models.Datatype.FLOAT16
            ),
        },
        sparse_vectors_config=BM25,
        hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
        metadata=metadata,
    )

    info = await client.get_collection(name)

    vectors = info.config.params.vectors
    assert isinstance(vectors, dict)
    assert (vectors["dense"].size, vectors["dense"].distance) == (3, models.Distance.COSINE)
    assert (vectors["other"].size, vectors["other"].distance) == (5, models.Distance.DOT)
    assert vectors["other"].datatype == models.Datatype.FLOAT16
    assert info.config.params.sparse_vectors == BM25
    assert (info.config.hnsw_config.m, info.config.hnsw_config.payload_m) == (0, 16)
    assert info.config.metadata == metadata
    assert info.config.params.shard_number == 1
    assert (info.points_count, info.payload_schema) == (0, {})
    assert info.status == models.CollectionStatus.GREEN


async def test_metadata_is_merged_by_an_update(client: AsyncQdrantClient, name: str) -> None:
    await client.create_collection(name, vectors_config=DENSE, metadata={"a": 1, "b": 2})

    await client.update_collection(name, metadata={"b": 3, "c": 4})

    info = await client.get_collection(name)
    assert info.config.metadata == {"a": 1, "b": 3, "c": 4}


async def test_of_many_creations_at_once_one_succeeds(client: AsyncQdrantClient, name: str) -> None:
    outcomes = await asyncio.gather(
        *(client.create_collection(name, vectors_config=DENSE) for _ in range(5)),
        return_exceptions=True,
    )

    refused = [outcome for outcome in outcomes if isinstance(outcome, AioRpcError)]
    assert outcomes.count(True) == 1
    assert {failure.code() for failure in refused} == {grpc.StatusCode.ALREADY_EXISTS}
    assert refused[0].details() == f"Wrong input: Collection `{name}` already exists!"


async def test_a_deleted_collection_is_gone_with_its_aliases_and_points(
    client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(name, vectors_config=DENSE)
    await client.upsert(name, [models.PointStruct(id=1, vector={"dense": [1, 0, 0]})])
    await _create_alias(client, name, f"{name}-alias")

    assert await client.delete_collection(name)

    assert not await client.collection_exists(name)
    assert not await client.collection_exists(f"{name}-alias")
    assert name not in [one.name for one in (await client.get_collections()).collections]
    assert not await client.delete_collection(name)
    await client.create_collection(name, vectors_config=DENSE)
    assert (await client.count(name)).count == 0


async def test_payload_indexes_report_their_type_parameters_and_points(
    client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(name, vectors_config=DENSE)
    await client.create_payload_index(
        name,
        "tenant",
        models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    )
    await client.create_payload_index(name, "epoch", models.PayloadSchemaType.INTEGER)
    await client.create_payload_index(
        name,
        "text",
        models.TextIndexParams(
            type=models.TextIndexType.TEXT, tokenizer=models.TokenizerType.WORD, lowercase=True
        ),
    )
    await client.create_payload_index(name, "gone", models.PayloadSchemaType.BOOL)
    await client.delete_payload_index(name, "gone")
    await client.upsert(
        name, [models.PointStruct(id=1, vector={}, payload={"tenant": "a", "epoch": 7})]
    )

    schema = (await client.get_collection(name)).payload_schema

    assert {field: index.data_type.value for field, index in schema.items()} == {
        "tenant": "keyword",
        "epoch": "integer",
        "text": "text",
    }
    assert {field: index.points for field, index in schema.items()} == {
        "tenant": 1,
        "epoch": 1,
        "text": 0,
    }
    tenant = schema["tenant"].params
    assert isinstance(tenant, models.KeywordIndexParams)
    assert tenant.is_tenant is True
    assert schema["epoch"].params is None


async def test_an_index_of_another_type_takes_the_old_ones_place(
    client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(name, vectors_config=DENSE)
    await client.upsert(name, [models.PointStruct(id=1, vector={}, payload={"field": 7})])
    await client.create_payload_index(name, "field", models.PayloadSchemaType.KEYWORD)
    await client.create_payload_index(name, "field", models.PayloadSchemaType.INTEGER)
    await client.create_payload_index(name, "field", models.PayloadSchemaType.INTEGER)

    schema = (await client.get_collection(name)).payload_schema

    assert schema["field"].data_type == models.PayloadSchemaType.INTEGER
    assert schema["field"].points == 1


async def test_an_alias_switches_from_one_collection_to_another_in_one_operation(
    client: AsyncQdrantClient, name: str
) -> None:
    old, new, alias = f"{name}-1", f"{name}-2", f"{name}-live"
    for number, collection in enumerate((old, new)):
        await client.create_collection(collection, vectors_config=DENSE)
        await client.upsert(collection, [models.PointStruct(id=number, vector={})])
    await _create_alias(client, old, alias)
    assert await _ids(client, alias) == [0]

    await client.update_collection_aliases(
        [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)),
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=new, alias_name=alias)
            ),
        ]
    )

    assert await _ids(client, alias) == [1]
    assert (await client.get_collection(alias)).points_count == 1
    assert (await client.get_collection_aliases(old)).aliases == []
    assert [one.alias_name for one in (await client.get_collection_aliases(new)).aliases] == [alias]


async def test_alias_operations_are_all_done_or_none(client: AsyncQdrantClient, name: str) -> None:
    await client.create_collection(name, vectors_config=DENSE)
    await _create_alias(client, name, f"{name}-kept")

    with pytest.raises(AioRpcError) as refused:
        await client.update_collection_aliases(
            [
                models.DeleteAliasOperation(
                    delete_alias=models.DeleteAlias(alias_name=f"{name}-kept")
                ),
                models.CreateAliasOperation(
                    create_alias=models.CreateAlias(
                        collection_name="missing", alias_name=f"{name}-new"
                    )
                ),
            ]
        )

    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    aliases = [one.alias_name for one in (await client.get_aliases()).aliases]
    assert f"{name}-kept" in aliases
    assert f"{name}-new" not in aliases


async def test_a_renamed_alias_answers_under_its_new_name_only(
    client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(name, vectors_config=DENSE)
    await _create_alias(client, name, f"{name}-a")

    rename = models.RenameAlias(old_alias_name=f"{name}-a", new_alias_name=f"{name}-b")
    await client.update_collection_aliases([models.RenameAliasOperation(rename_alias=rename)])

    assert await client.collection_exists(f"{name}-b")
    assert not await client.collection_exists(f"{name}-a")


async def test_strict_mode_refuses_filters_on_fields_without_a_fitting_index(
    client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(
        name,
        vectors_config=DENSE,
        strict_mode_config=models.StrictModeConfig(
            enabled=True, unindexed_filtering_retrieve=False
        ),
    )
    await client.create_payload_index(name, "tenant", models.PayloadSchemaType.KEYWORD)
    await client.create_payload_index(name, "parts[].size", models.PayloadSchemaType.INTEGER)

    allowed = models.Filter(
        must=[
            _match("tenant", "a"),
            models.NestedCondition(
                nested=models.Nested(key="parts", filter=models.Filter(must=[_match("size", 1)]))
            ),
        ]
    )
    assert (await client.scroll(name, allowed))[0] == []
    assert (await client.delete(name, models.Filter(must=[_match("other", "a")]))) is not None
    for refused in (_match("other", "a"), _match("tenant", 1)):
        inner = models.Filter(must=[models.Filter(should=[refused])])
        with pytest.raises(AioRpcError, match="Index required but not found") as failure:
            await client.query_points(
                name, prefetch=models.Prefetch(query=[1, 0, 0], using="dense", filter=inner)
            )
        assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def _match(key: str, value: str | int) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


async def _create_alias(client: AsyncQdrantClient, collection: str, alias: str) -> None:
    create = models.CreateAlias(collection_name=collection, alias_name=alias)
    await client.update_collection_aliases([models.CreateAliasOperation(create_alias=create)])


async def _ids(client: AsyncQdrantClient, collection: str) -> list[models.ExtendedPointId]:
    return [record.id for record in (await client.scroll(collection))[0]]
