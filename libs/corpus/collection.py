"""The collection contract: what set-up creates, and what every process checks before it trusts it.

Readers and writers use an alias. Behind it stands a collection whose name and metadata say which
embedding profile, chunking version and version of terms shaped it; another one of them is another
collection.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import grpc
from qdrant_client import AsyncQdrantClient, models

from chassis.errors import ContractMismatch
from corpus import bm25, epochs
from corpus.failures import INDEX_MISSING, translated
from corpus.points import Key
from corpus.profile import EmbeddingProfile

DENSE: Final = "dense"
BM25: Final = "bm25"
DEFAULT_ALIAS: Final = "sluice"

PROFILE: Final = "embedding_profile"
CHUNKING: Final = "chunking_version"
TERMS: Final = "terms_version"

GRPC_PORT = 6334
SETUP_SECONDS = 30.0
CHECK_SECONDS = 2.0

_KEYWORD = models.PayloadSchemaType.KEYWORD
_INTEGER = models.PayloadSchemaType.INTEGER
INDEXES: Mapping[str, models.PayloadSchemaType] = {
    Key.TENANT.value: _KEYWORD,
    Key.DOCUMENT.value: _KEYWORD,
    Key.SOURCE.value: _KEYWORD,
    Key.REVISION.value: _KEYWORD,
    Key.INPUT_HASH.value: _KEYWORD,
    Key.CHUNKING.value: _KEYWORD,
    Key.ACCESS.value: _KEYWORD,
    Key.GROUPS.value: _KEYWORD,
    Key.DOCUMENT_TYPE.value: _KEYWORD,
    Key.AREA.value: _KEYWORD,
    Key.STATE.value: _KEYWORD,
    Key.CHUNK.value: _INTEGER,
    Key.VALID_FROM.value: _INTEGER,
    Key.VALID_TO.value: _INTEGER,
    Key.RETIRED_AT.value: _INTEGER,
    epochs.EPOCH: _INTEGER,
}


def connect(url: str, api_key: str = "") -> AsyncQdrantClient:
    """A client for the gRPC endpoint at `url`, such as http://127.0.0.1:6334.

    Nothing is sent yet. A Qdrant that comes back is found within a second.
    """
    address = urlsplit(url)
    return AsyncQdrantClient(
        host=address.hostname,
        grpc_port=address.port or GRPC_PORT,
        https=address.scheme == "https",
        api_key=api_key or None,
        prefer_grpc=True,
        check_compatibility=False,  # it would ask over HTTP, which the local node does not speak
        grpc_options={
            "grpc.initial_reconnect_backoff_ms": 100,
            "grpc.min_reconnect_backoff_ms": 500,
            "grpc.max_reconnect_backoff_ms": 1_000,
        },
    )


def collection_name(alias: str, profile: EmbeddingProfile, chunking_version: str) -> str:
    """The collection that set-up creates behind the alias."""
    return f"{alias}.{profile.id}.{chunking_version}.{bm25.VERSION}"


async def ensure(
    client: AsyncQdrantClient, alias: str, profile: EmbeddingProfile, chunking_version: str
) -> None:
    """Create what is missing, then verify. Safe when several processes do it at once.

    The alias comes last: whoever finds it finds every index there. Raises ContractMismatch when
    the alias already stands for something else, and what `failures.translated` raises.
    """
    try:
        found = await verify(client, alias, profile)
    except ContractMismatch as failure:
        if failure.reason != INDEX_MISSING:
            raise
        async with translated(SETUP_SECONDS):
            name = await _create(client, alias, profile, chunking_version)
            await client.update_collection_aliases([_alias(alias, name)])
        found = await verify(client, alias, profile)
    _same("chunking version", chunking_version, found)


async def ensure_beside(
    client: AsyncQdrantClient, alias: str, profile: EmbeddingProfile, chunking_version: str
) -> None:
    """Create the profile's collection without touching the alias, then verify it.

    Raises as `ensure` does.
    """
    async with translated(SETUP_SECONDS):
        name = await _create(client, alias, profile, chunking_version)
    await verify(client, name, profile)


async def behind(client: AsyncQdrantClient, alias: str) -> str:
    """Name of the collection that readers use; empty before anything was set up."""
    async with translated(CHECK_SECONDS):
        found = await client.get_aliases()
    return next((one.collection_name for one in found.aliases if one.alias_name == alias), "")


async def switch(client: AsyncQdrantClient, alias: str, name: str) -> None:
    """Let the alias stand for another collection, in one step: no reader finds neither."""
    remove = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
    async with translated(SETUP_SECONDS):
        await client.update_collection_aliases([remove, _alias(alias, name)])


async def drop(client: AsyncQdrantClient, name: str) -> None:
    """Delete a collection with all that it holds."""
    async with translated(SETUP_SECONDS):
        await client.delete_collection(name)


async def verify(client: AsyncQdrantClient, alias: str, profile: EmbeddingProfile) -> str:
    """The chunking version of the collection, which every read has to name.

    Raises ContractMismatch that says expected and found (INDEX_MISSING when nobody has set the
    collection up yet), and what `failures.translated` raises.
    """
    async with translated(CHECK_SECONDS):
        info = await client.get_collection(alias)
    for what, expected, found in _compared(info, profile):
        _same(what, expected, found)
    version = (info.config.metadata or {}).get(CHUNKING)
    if not isinstance(version, str) or not version:
        raise _mismatch("chunking version", "a name", version)
    return version


async def _create(
    client: AsyncQdrantClient, alias: str, profile: EmbeddingProfile, chunking_version: str
) -> str:
    name = collection_name(alias, profile, chunking_version)
    try:
        await client.create_collection(
            name,
            vectors_config={
                DENSE: models.VectorParams(
                    size=profile.dimensions, distance=_distance(profile.distance)
                )
            },
            sparse_vectors_config={BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            metadata={PROFILE: profile.id, CHUNKING: chunking_version, TERMS: bm25.VERSION},
        )
    except grpc.aio.AioRpcError as failure:
        # Another replica was faster; indexes and alias below are the same from both.
        if failure.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise
    # Whoever was cut off goes on where it stopped, however short the time for each try is.
    there = (await client.get_collection(name)).payload_schema
    for field in INDEXES.keys() - there.keys():
        await client.create_payload_index(name, field, _index(field))
    return name


def _alias(alias: str, name: str) -> models.CreateAliasOperation:
    operation = models.CreateAlias(collection_name=name, alias_name=alias)
    return models.CreateAliasOperation(create_alias=operation)


def _index(field: str) -> models.PayloadSchemaType | models.KeywordIndexParams:
    if field == Key.TENANT:
        return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    return INDEXES[field]


def _distance(name: str) -> models.Distance:
    return models.Distance(name.capitalize())


def _compared(
    info: models.CollectionInfo, profile: EmbeddingProfile
) -> Iterator[tuple[str, Any, Any]]:
    vectors, sparse = info.config.params.vectors, info.config.params.sparse_vectors or {}
    dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
    words = sparse.get(BM25)
    metadata = info.config.metadata or {}
    yield "embedding profile", profile.id, metadata.get(PROFILE)
    yield "version of terms", bm25.VERSION, metadata.get(TERMS)
    yield f"size of vector {DENSE}", profile.dimensions, dense and dense.size
    yield f"distance of vector {DENSE}", _distance(profile.distance), dense and dense.distance
    yield f"modifier of vector {BM25}", models.Modifier.IDF, words and words.modifier
    for field, kind in INDEXES.items():
        index = info.payload_schema.get(field)
        yield f"index of {field}", kind, index and index.data_type


def _same(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise _mismatch(what, expected, found)


def _mismatch(what: str, expected: object, found: object) -> ContractMismatch:
    return ContractMismatch(
        f"the collection's {what} is {_shown(found)}, expected {_shown(expected)};"
        " set what it was made with, or make a new one with `sluice reindex`",
        reason="COLLECTION_MISMATCH",
    )


def _shown(value: object) -> str:
    return "missing" if value is None else str(getattr(value, "value", value))
