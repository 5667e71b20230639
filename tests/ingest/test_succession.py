"""A new chunking or profile is another collection, which takes the old one's place at once."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from qdrant_client import AsyncQdrantClient

from chassis.errors import Conflict, ContractMismatch
from corpus import collection, epochs, tokens
from corpus.qdrant import Qdrant
from services.ingest import lease
from services.ingest.chunk import Chunking
from services.ingest.embed import Batching
from services.ingest.index import Index
from services.ingest.lease import Lease, Leases
from services.ingest.library import Library
from services.ingest.prepare import Header, Preparation
from services.ingest.succession import Succession
from tests.capacity.server import Server
from tests.ingest.parts import PROFILE, Unit, preparation

A, B = Header("a.md", "src"), Header("b.md", "src")
LONG = "\n\n".join(f"Paragraph {n} tells of the matter at some length." for n in range(30)).encode()


@dataclass(frozen=True)
class House:
    """A suite's two collections behind one alias of the test's own."""

    qdrant: Qdrant
    client: AsyncQdrantClient
    alias: str
    old: Library
    new: Library
    succession: Succession

    async def switch(self, tenant: str = "one", **policy: bool) -> str:
        policy = {"allow_missing": False, "drop_previous": False, **policy}
        return (await self.succession.switch(tenant, **policy)).previous

    async def readers_version(self) -> str:
        return await collection.verify(self.qdrant, self.alias, PROFILE)


@pytest.fixture
async def house(qdrant: Qdrant, client: AsyncQdrantClient, redis: Server) -> AsyncIterator[House]:
    alias = f"alias-{uuid.uuid4().hex}"
    leases = Leases(lease.connect(redis.url), quiet=0.001)

    def library(index: Index, made: Preparation) -> Library:
        return Library(index, leases, Unit(), Batching(16, 4_096, PROFILE.input_limit), made)

    first = preparation()
    smaller = Preparation(
        Chunking(PROFILE, tokens.counter(PROFILE), budget=64, overlap=0), first.default_access
    )
    current = Index(qdrant, alias, PROFILE, first.chunking.version)
    following = Index(qdrant, alias, PROFILE, smaller.chunking.version, beside=True)
    yield House(
        qdrant,
        client,
        alias,
        library(current, first),
        library(following, smaller),
        Succession(Index(qdrant, alias, PROFILE, smaller.chunking.version), following, leases),
    )
    await leases.close()


async def test_readers_keep_the_old_collection_until_the_switch_and_have_the_new_one_then(
    house: House,
) -> None:
    old = await house.old.put("one", A, LONG)
    await house.new.index.ensure()
    new = await house.new.put("one", A, LONG)
    assert new.chunks > old.chunks
    assert await house.readers_version() == house.old.preparation.chunking.version
    assert await house.switch() == house.old.index.name
    assert await house.readers_version() == house.new.preparation.chunking.version
    assert await house.switch() == ""


async def test_a_collection_that_lacks_a_document_takes_nobodys_place(house: House) -> None:
    await house.old.put("one", A, LONG)
    await house.old.put("two", B, LONG)
    await house.new.put("one", A, LONG)
    with pytest.raises(Conflict, match="1 documents are not in the new collection yet;") as refused:
        await house.switch()
    assert refused.value.reason == "DOCUMENTS_MISSING"
    assert "b.md" not in refused.value.message
    with pytest.raises(Conflict, match=r"yet: b\.md;"):
        await house.switch("two")
    assert await house.readers_version() == house.old.preparation.chunking.version
    assert await house.switch(allow_missing=True) == house.old.index.name


async def test_no_epoch_of_the_new_collection_was_ever_one_of_the_old(house: House) -> None:
    for number in range(4):
        await house.old.put("one", A, f"text {number}".encode())
    await house.new.put("one", A, b"text 3")
    before = await epochs.read(house.qdrant, house.alias, "one", 5)
    await house.switch()
    after = await epochs.read(house.qdrant, house.alias, "one", 5)
    assert (before, after) == (4, 5)
    page = await house.new.page("one", "", "", 10)
    assert [head.document_id for head in page.heads] == ["a.md"]
    assert (await house.new.put("one", A, b"text 4")).epoch == 6


async def test_what_a_dead_publisher_left_does_not_come_alive_by_the_switch(house: House) -> None:
    for number in range(3):
        await house.old.put("one", A, f"text {number}".encode())
    await house.new.put("one", A, b"text 2")
    left = await house.new.prepare("one", B, b"never published")
    vectors, _ = await house.new._vectors("one", left)
    async with house.new._publisher("one") as publisher:
        rows = await publisher._rows(await publisher.begin() + 1, left.passages, vectors)
        await publisher.index.write(rows)
    await house.switch()
    page = await house.new.page("one", "", "", 10)
    assert [head.document_id for head in page.heads] == ["a.md"]


async def test_the_previous_collection_is_deleted_where_that_is_asked_for(house: House) -> None:
    await house.old.put("one", A, LONG)
    await house.new.put("one", A, LONG)
    name = await house.switch(drop_previous=True)
    assert name == house.old.index.name
    assert not await house.client.collection_exists(name)
    assert await house.client.collection_exists(house.new.index.name)


async def test_the_first_collection_of_all_can_be_put_in_place_too(house: House) -> None:
    await house.new.put("one", A, LONG)
    assert await house.switch() == ""
    assert await house.readers_version() == house.new.preparation.chunking.version


async def test_who_writes_by_the_old_rules_is_refused_after_the_switch(house: House) -> None:
    await house.old.put("one", A, LONG)
    await house.new.put("one", A, LONG)
    await house.switch()
    with pytest.raises(ContractMismatch, match="chunking version"):
        await house.old.put("one", A, b"late")


async def test_who_waited_while_readers_were_moved_writes_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.old.put("one", A, LONG)
    await house.new.put("one", A, LONG)
    waits, whole = asyncio.Event(), Leases._taken

    async def taken(leases: Leases, wanted: Lease) -> bool:
        waits.set()
        return await whole(leases, wanted)

    async with house.old.leases.hold("one"):
        monkeypatch.setattr(Leases, "_taken", taken)
        late = asyncio.create_task(house.old.put("one", A, b"late"))
        await waits.wait()
        await house.new.index.succeed()
    with pytest.raises(ContractMismatch, match="chunking version"):
        await late
    epoch = await house.new.index.epoch("one")
    head = await house.new.index.head("one", "a.md", epoch)
    assert head is not None
    assert head.chunking_version == house.new.preparation.chunking.version


async def test_two_writers_of_one_document_end_in_one_of_the_two_whole(house: House) -> None:
    texts = [f"{mark}\n\n{LONG.decode()}".encode() for mark in ("first", "second")]
    await asyncio.gather(*(house.old.put("one", A, text) for text in texts))
    epoch = await house.old.index.epoch("one")
    head = await house.old.index.head("one", "a.md", epoch)
    assert head is not None
    expected = {(await house.old.prepare("one", A, text)).revision for text in texts}
    assert head.revision in expected
    assert await house.old.index.count_live("one", ["a.md"], epoch) == head.chunks
