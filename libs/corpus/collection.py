"""The collection contract: what set-up creates, and what every process checks before it trusts it.

Readers and writers use an alias. Behind it stands a collection whose name and metadata say which
embedding profile, chunking version and version of terms shaped it; another one of them is another
collection.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import grpc

from chassis.errors import ContractMismatch
from corpus import bm25, epochs
from corpus.failures import INDEX_MISSING, translated
from corpus.fields import to_values
from corpus.points import Key
from corpus.profile import EmbeddingProfile
from corpus.qdrant import Qdrant, wire

DENSE: Final = "dense"
BM25: Final = "bm25"
DEFAULT_ALIAS: Final = "sluice"

PROFILE: Final = "embedding_profile"
CHUNKING: Final = "chunking_version"
TERMS: Final = "terms_version"

GRPC_PORT = 6334
SETUP_SECONDS = 30.0
CHECK_SECONDS = 2.0

_KEYWORD = "keyword"
_INTEGER = "integer"
INDEXES: Mapping[str, str] = {
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

_OPTIONS = [
    # Batches and replies are bounded by who sends them.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]


def connect(url: str, api_key: str = "") -> Qdrant:
    """A connection to the gRPC endpoint at `url`, such as http://127.0.0.1:6334.

    Nothing is sent yet. A Qdrant that comes back is found within a second.
    """
    address = urlsplit(url)
    target = f"{address.hostname}:{address.port or GRPC_PORT}"
    if address.scheme == "https":
        credentials = grpc.ssl_channel_credentials()
        return Qdrant(grpc.aio.secure_channel(target, credentials, _OPTIONS), api_key)
    return Qdrant(grpc.aio.insecure_channel(target, _OPTIONS), api_key)


def collection_name(alias: str, profile: EmbeddingProfile, chunking_version: str) -> str:
    """The collection that set-up creates behind the alias."""
    return f"{alias}.{profile.id}.{chunking_version}.{bm25.VERSION}"


async def ensure(
    qdrant: Qdrant, alias: str, profile: EmbeddingProfile, chunking_version: str
) -> None:
    """Create what is missing, then verify. Safe when several processes do it at once.

    The alias comes last: whoever finds it finds every index there. Raises ContractMismatch when
    the alias already stands for something else, and what `failures.translated` raises.
    """
    try:
        found = await verify(qdrant, alias, profile)
    except ContractMismatch as failure:
        if failure.reason != INDEX_MISSING:
            raise
        async with translated(SETUP_SECONDS):
            name = await _create(qdrant, alias, profile, chunking_version)
            await _change_aliases(qdrant, _alias(alias, name))
        found = await verify(qdrant, alias, profile)
    _same("chunking version", chunking_version, found)


async def ensure_beside(
    qdrant: Qdrant, alias: str, profile: EmbeddingProfile, chunking_version: str
) -> None:
    """Create the profile's collection without touching the alias, then verify it.

    Raises as `ensure` does.
    """
    async with translated(SETUP_SECONDS):
        name = await _create(qdrant, alias, profile, chunking_version)
    await verify(qdrant, name, profile)


async def behind(qdrant: Qdrant, alias: str) -> str:
    """Name of the collection that readers use; empty before anything was set up."""
    async with translated(CHECK_SECONDS):
        found = (await qdrant.collections.ListAliases(wire.ListAliasesRequest())).aliases
    return next((one.collection_name for one in found if one.alias_name == alias), "")


async def switch(qdrant: Qdrant, alias: str, name: str) -> None:
    """Let the alias stand for another collection, in one step: no reader finds neither."""
    remove = wire.AliasOperations(delete_alias=wire.DeleteAlias(alias_name=alias))
    async with translated(SETUP_SECONDS):
        await _change_aliases(qdrant, remove, _alias(alias, name))


async def drop(qdrant: Qdrant, name: str) -> None:
    """Delete a collection with all that it holds."""
    async with translated(SETUP_SECONDS):
        await qdrant.collections.Delete(wire.DeleteCollection(collection_name=name))


async def verify(qdrant: Qdrant, alias: str, profile: EmbeddingProfile) -> str:
    """The chunking version of the collection, which every read has to name.

    Raises ContractMismatch that says expected and found (INDEX_MISSING when nobody has set the
    collection up yet), and what `failures.translated` raises.
    """
    async with translated(CHECK_SECONDS):
        info = await _described(qdrant, alias)
    for what, expected, found in _compared(info, profile):
        _same(what, expected, found)
    version = _told(info, CHUNKING)
    if version is None:
        raise _mismatch("chunking version", "a name", version)
    return version


def dense_vector(point: wire.RetrievedPoint) -> Sequence[float]:
    """The dense vector that came with the point; empty where none did."""
    named = point.vectors.vectors.vectors
    if DENSE not in named:
        return ()
    return named[DENSE].dense.data[:] or named[DENSE].data[:]  # where older servers put it


async def _create(
    qdrant: Qdrant, alias: str, profile: EmbeddingProfile, chunking_version: str
) -> str:
    name = collection_name(alias, profile, chunking_version)
    distance = wire.Distance.Value(profile.distance.capitalize())
    dense = wire.VectorParams(size=profile.dimensions, distance=distance)
    request = wire.CreateCollection(
        collection_name=name,
        vectors_config=wire.VectorsConfig(params_map=wire.VectorParamsMap(map={DENSE: dense})),
        sparse_vectors_config=wire.SparseVectorConfig(
            map={BM25: wire.SparseVectorParams(modifier=wire.Modifier.Idf)}
        ),
        metadata=to_values({PROFILE: profile.id, CHUNKING: chunking_version, TERMS: bm25.VERSION}),
    )
    try:
        await qdrant.collections.Create(request)
    except grpc.aio.AioRpcError as failure:
        # Another replica was faster; indexes and alias below are the same from both.
        if failure.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise
    # Whoever was cut off goes on where it stopped, however short the time for each try is.
    there = (await _described(qdrant, name)).payload_schema
    for field in INDEXES.keys() - there.keys():
        await qdrant.points.CreateFieldIndex(_index(name, field))
    return name


async def _described(qdrant: Qdrant, name: str) -> wire.CollectionInfo:
    request = wire.GetCollectionInfoRequest(collection_name=name)
    reply: wire.GetCollectionInfoResponse = await qdrant.collections.Get(request)
    return reply.result


async def _change_aliases(qdrant: Qdrant, *actions: wire.AliasOperations) -> None:
    await qdrant.collections.UpdateAliases(wire.ChangeAliases(actions=actions))


def _alias(alias: str, name: str) -> wire.AliasOperations:
    operation = wire.CreateAlias(collection_name=name, alias_name=alias)
    return wire.AliasOperations(create_alias=operation)


def _index(name: str, field: str) -> wire.CreateFieldIndexCollection:
    tenant = wire.KeywordIndexParams(is_tenant=True)
    return wire.CreateFieldIndexCollection(
        collection_name=name,
        wait=True,
        field_name=field,
        field_type=wire.FieldType.Value(f"FieldType{INDEXES[field].capitalize()}"),
        field_index_params=(
            wire.PayloadIndexParams(keyword_index_params=tenant) if field == Key.TENANT else None
        ),
    )


def _compared(
    info: wire.CollectionInfo, profile: EmbeddingProfile
) -> Iterator[tuple[str, object, object]]:
    params = info.config.params
    dense = params.vectors_config.params_map.map.get(DENSE)
    words = params.sparse_vectors_config.map.get(BM25)
    yield "embedding profile", profile.id, _told(info, PROFILE)
    yield "version of terms", bm25.VERSION, _told(info, TERMS)
    yield f"size of vector {DENSE}", profile.dimensions, dense and dense.size
    distance = dense and _name(wire.Distance, dense.distance)
    yield f"distance of vector {DENSE}", profile.distance, distance
    modifier = words and _name(wire.Modifier, words.modifier)
    yield f"modifier of vector {BM25}", "idf", modifier
    for field, kind in INDEXES.items():
        index = info.payload_schema.get(field)
        yield f"index of {field}", kind, index and _name(wire.PayloadSchemaType, index.data_type)


def _told(info: wire.CollectionInfo, key: str) -> str | None:
    """A text of the collection's metadata."""
    return info.config.metadata[key].string_value or None


def _name(enum: Any, number: int) -> str:  # noqa: ANN401 - a generated one
    """An enum's value in small letters; a newer Qdrant may have some that nobody here can name."""
    return enum.Name(number).lower() if number in enum.values() else str(number)


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
    return "missing" if value is None else str(value)
