"""The contract on the real engine: set-up, and the scope inside a query."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, models

from bench.parts import ordinary
from chassis.errors import ContractMismatch, DataViolation
from chassis.identity import AccessLevel
from corpus import bm25, collection, epochs
from corpus.collection import DENSE, ensure, verify
from corpus.epochs import LIVE
from corpus.points import Key, State, StoredPassage, to_payload
from corpus.profile import profile
from corpus.qdrant import Qdrant
from corpus.scope import Scope
from tests.corpus.payloads import passage_in
from tests.ingest import parts
from tests.ingest.parts import Part
from tests.stages import free_port

E5 = profile("multilingual-e5-small")
KNOWN = {
    collection.PROFILE: E5.id,
    collection.CHUNKING: "blocks1",
    collection.TERMS: bm25.VERSION,
}
Build = Callable[..., StoredPassage]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Part]:
    running = parts.node(tmp_path_factory.mktemp("qdrant"), free_port())
    running.start()
    running.wait_until_ready()
    yield running
    running.kill()


@pytest.fixture
async def qdrant(node: Part) -> AsyncIterator[Qdrant]:
    qdrant = collection.connect(node.url)
    yield qdrant
    await qdrant.close()


@pytest.fixture
async def client(node: Part) -> AsyncIterator[AsyncQdrantClient]:
    """Somebody else's."""
    client = ordinary.client(node.url)
    yield client
    await client.close()


@pytest.fixture
def alias() -> str:
    return f"a{uuid.uuid4().hex}"


async def test_several_set_it_up_at_once_and_find_what_they_agreed_on(
    qdrant: Qdrant, alias: str
) -> None:
    await asyncio.gather(*(ensure(qdrant, alias, E5, "blocks1") for _ in range(4)))
    assert await verify(qdrant, alias, E5) == "blocks1"
    await ensure(qdrant, alias, E5, "blocks1")


async def test_a_collection_that_nobody_set_up_is_told_apart(qdrant: Qdrant, alias: str) -> None:
    with pytest.raises(ContractMismatch) as refusal:
        await verify(qdrant, alias, E5)
    assert refusal.value.reason == "INDEX_MISSING"


async def test_a_set_up_that_was_cut_off_is_finished(
    qdrant: Qdrant, client: AsyncQdrantClient, alias: str
) -> None:
    name = collection.collection_name(alias, E5, "blocks1")
    await client.create_collection(
        name,
        vectors_config={DENSE: models.VectorParams(size=384, distance=models.Distance.COSINE)},
        sparse_vectors_config={
            collection.BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)
        },
        metadata=KNOWN,
    )
    await ensure(qdrant, alias, E5, "blocks1")
    assert await verify(qdrant, alias, E5) == "blocks1"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"size": 3}, "size of vector dense is 3, expected 384"),
        ({"distance": models.Distance.DOT}, "distance of vector dense is dot, expected cosine"),
        ({"metadata": {}}, "embedding profile is missing, expected multilingual-e5-small"),
        (
            {
                "metadata": {collection.PROFILE: E5.id, collection.TERMS: bm25.VERSION},
                "indexes": collection.INDEXES,
            },
            "chunking version is missing, expected a name",
        ),
        (
            {"metadata": {collection.PROFILE: E5.id}},
            "version of terms is missing, expected terms1; .*`sluice reindex`",
        ),
        ({"sparse": None}, "modifier of vector bm25 is none, expected idf"),
        (
            {"indexes": {**collection.INDEXES, Key.GROUPS: "integer"}},
            "index of groups is integer, expected keyword",
        ),
        ({"indexes": {}}, "index of tenant_id is missing, expected keyword"),
    ],
)
async def test_a_collection_that_differs_is_refused_with_expected_and_found(
    qdrant: Qdrant, client: AsyncQdrantClient, alias: str, changes: dict[str, Any], complaint: str
) -> None:
    modifier = changes.get("sparse", models.Modifier.IDF)
    await client.create_collection(
        alias,
        vectors_config={
            DENSE: models.VectorParams(
                size=changes.get("size", 384),
                distance=changes.get("distance", models.Distance.COSINE),
            )
        },
        sparse_vectors_config={collection.BM25: models.SparseVectorParams(modifier=modifier)},
        metadata=changes.get("metadata", KNOWN),
    )
    for field, kind in changes.get("indexes", {}).items():
        await client.create_payload_index(alias, field, kind)
    with pytest.raises(ContractMismatch, match=complaint) as refusal:
        await verify(qdrant, alias, E5)
    assert refusal.value.reason == "COLLECTION_MISMATCH"


async def test_an_epoch_point_that_holds_no_epoch_is_a_violation(
    qdrant: Qdrant, client: AsyncQdrantClient, alias: str
) -> None:
    await ensure(qdrant, alias, E5, "blocks1")
    assert await epochs.read(qdrant, alias, "none", 2) == 0
    wrong: dict[str, dict[str, Any]] = {
        "nothing": {},
        "text": {epochs.EPOCH: "1", epochs.TENANT: "text"},
        "flag": {epochs.EPOCH: True, epochs.TENANT: "flag"},
        "below zero": {epochs.EPOCH: -1, epochs.TENANT: "below zero"},
        "somebody else's": {epochs.EPOCH: 1, epochs.TENANT: "other"},
    }
    for tenant, payload in wrong.items():
        point = models.PointStruct(id=epochs.point_id(tenant), vector={}, payload=payload)
        await client.upsert(alias, [point])
        with pytest.raises(DataViolation, match=epochs.point_id(tenant)):
            await epochs.read(qdrant, alias, tenant, 2)


GROUPS = ("sre", "dba", "web")


def varied(build: Build, chance: random.Random) -> StoredPassage:
    begins = chance.randint(1, 6)
    return build(
        tenant=chance.choice(["acme", "other"]),
        access=chance.choice(list(AccessLevel)),
        groups=tuple(sorted(chance.sample(GROUPS, chance.randint(0, 2)))),
        state=chance.choice(list(State)),
        chunking_version=chance.choice(["blocks1", "blocks1", "blocks0"]),
        valid_from=begins,
        valid_to=chance.choice([begins + 1, begins + 2, LIVE]),
    )


def spoiled(passage: StoredPassage, chance: random.Random) -> dict[str, Any]:
    """The payload with a field that a guard relies on missing or mistyped."""
    payload = to_payload(passage)
    field = chance.choice([Key.TENANT, Key.ACCESS, Key.GROUPS, Key.STATE, Key.VALID_TO])
    values: list[Any] = [None, 1, [], True, {"a": 1}]
    value = chance.choice(values)
    if value is None:
        del payload[field]
        return payload
    return {**payload, field.value: value}


async def test_the_query_returns_exactly_what_the_scope_permits(
    qdrant: Qdrant, client: AsyncQdrantClient, alias: str, passage: Build
) -> None:
    chance = random.Random(7)
    await ensure(qdrant, alias, E5, "blocks1")
    stored = {str(uuid.UUID(int=n)): varied(passage, chance) for n in range(300)}
    payloads = {name: to_payload(one) for name, one in stored.items()}
    bad = {str(uuid.UUID(int=n)): spoiled(varied(passage, chance), chance) for n in range(300, 400)}
    await client.upsert(
        alias,
        [
            models.PointStruct(id=name, vector={DENSE: [0.5] * 384}, payload=payload)
            for name, payload in (payloads | bad).items()
        ],
    )
    returned = 0
    for _ in range(200):
        scope = Scope(
            tenant=chance.choice(["acme", "other"]),
            epoch=chance.randint(0, 8),
            levels=tuple(chance.choice(list(AccessLevel)).readable()),
            groups=frozenset(chance.sample([*GROUPS, "*"], chance.randint(0, 2))),
            states=tuple(chance.sample(list(State), chance.randint(0, 2))),
            chunking_version="blocks1",
        )
        records, _ = await client.scroll(alias, scope.filter(), limit=1_000)
        found = {str(record.id) for record in records}
        assert found & payloads.keys() == {n for n, one in stored.items() if scope.permits(one)}
        for record in records:
            if str(record.id) in bad:
                # Whatever the index lets through is stopped by the guard that reads it.
                with pytest.raises(DataViolation):
                    passage_in(str(record.id), record.payload)
        returned += len(found)
    assert returned > 500
