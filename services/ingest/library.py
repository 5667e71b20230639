"""A tenant's documents: put, shown beforehand, deleted, listed, reconciled with their source."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import islice

from chassis.errors import DeadlineExceeded, InvalidInput, SluiceError
from corpus.points import StoredPassage
from services.ingest.embed import Batching, Embedder
from services.ingest.index import Index
from services.ingest.keep import Keep
from services.ingest.lease import Leases
from services.ingest.prepare import Header, Preparation, Prepared
from services.ingest.publish import Publisher
from services.ingest.room import Room


class Outcome(Enum):
    """What became of a document that was put."""

    ADDED = auto()
    UPDATED = auto()
    UNCHANGED = auto()


@dataclass(frozen=True, slots=True)
class Put:
    """`embedded` chunks went to the provider, `reused` ones kept a vector.

    Readers see the document from `epoch` on.
    """

    outcome: Outcome
    revision: str
    chunks: int
    embedded: int
    reused: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Page:
    """First passages of some documents in order of id, and whether there are more."""

    heads: Sequence[StoredPassage]
    more: bool


@dataclass(frozen=True, slots=True)
class Library:
    """All writes of one document or source are one epoch."""

    index: Index
    leases: Leases
    embedder: Embedder
    batching: Batching
    preparation: Preparation
    room: Room = field(default_factory=Room)

    async def prepare(self, tenant: str, header: Header, data: bytes) -> Prepared:
        """Raises InvalidInput, and Exhausted when too much is being prepared."""
        return await self.room.run(partial(self.preparation.prepare, tenant, header, data))

    async def put(self, tenant: str, header: Header, data: bytes) -> Put:
        """Store a document; nothing is embedded or written when nothing differs.

        Raises InvalidInput, and what embedder, index and leases raise. DeadlineExceeded
        (EMBEDDING_UNFINISHED) says how far it came: the next call goes on from there.
        """
        prepared = await self.prepare(tenant, header, data)
        await self.index.ensure()
        epoch = await self.index.epoch(tenant)
        if (await self._revision(tenant, header.document_id, epoch)) == prepared.revision:
            return _put(Outcome.UNCHANGED, prepared, 0, epoch)
        vectors, embedded = await self._vectors(tenant, prepared)
        async with self._publisher(tenant) as publisher:
            epoch = await publisher.begin()
            before = await self._revision(tenant, header.document_id, epoch)
            if before == prepared.revision:
                # Somebody else put the same meanwhile.
                return _put(Outcome.UNCHANGED, prepared, embedded, epoch)
            epoch = await publisher.replace(epoch, [header.document_id], prepared.passages, vectors)
        outcome = Outcome.UPDATED if before else Outcome.ADDED
        return _put(outcome, prepared, embedded, epoch)

    async def delete(self, tenant: str, document_id: str) -> tuple[bool, int]:
        """Whether the document was there, and the epoch from which it is not."""
        retired, epoch = await self._retire(tenant, [document_id])
        return bool(retired), epoch

    async def reconcile(
        self, tenant: str, source: str, document_ids: Sequence[str], *, allow_empty: bool
    ) -> tuple[list[str], int]:
        """Retire what the source does not hold any more, in one epoch: their ids, and the epoch.

        Raises InvalidInput (EMPTY_SOURCE) when the source holds nothing and that is not allowed.
        """
        if not document_ids and not allow_empty:
            raise InvalidInput(
                f"source {source} is empty, which would retire all of its documents",
                field="document_ids",
                reason="EMPTY_SOURCE",
            )
        kept = set(document_ids)
        epoch = await self.index.epoch(tenant)
        live = await self.index.document_ids(tenant, source, epoch)
        gone = [document_id for document_id in live if document_id not in kept]
        return await self._retire(tenant, gone, source) if gone else ([], epoch)

    async def page(self, tenant: str, source: str, after: str, size: int) -> Page:
        """Up to `size` live documents whose ids come after `after`; of all sources for ""."""
        epoch = await self.index.epoch(tenant)
        ids = await self.index.document_ids(tenant, source, epoch)
        following = [document_id for document_id in ids if document_id > after]
        heads = await self.index.heads(tenant, following[:size], epoch)
        return Page(heads, more=len(following) > size)

    async def _vectors(self, tenant: str, prepared: Prepared) -> tuple[list[Sequence[float]], int]:
        """A vector a chunk, and for how many the provider was asked: once for each new text."""
        hashes = [passage.input_hash for passage in prepared.passages]
        known = await self.index.vectors(tenant, hashes)
        chunks = dict(zip(hashes, prepared.chunks, strict=True))
        new = [name for name in chunks if name not in known]
        keep = Keep(self.index, tenant)
        embedding = self.batching.embed(self.embedder, [chunks[name] for name in new])
        names = iter(new)
        try:
            async with aclosing(embedding):
                async for vectors in embedding:
                    found = dict(zip(islice(names, len(vectors)), vectors, strict=True))
                    known.update(found)
                    await keep.add(found)
        except SluiceError as failure:
            await keep.store()
            if isinstance(failure, DeadlineExceeded):
                raise _unfinished(len(known), len(chunks)) from failure
            raise
        return [known[name] for name in hashes], len(new)

    async def _retire(
        self, tenant: str, document_ids: Sequence[str], source: str = ""
    ) -> tuple[list[str], int]:
        epoch = await self.index.epoch(tenant)
        if not await self.index.heads(tenant, document_ids, epoch):
            return [], epoch
        async with self._publisher(tenant) as publisher:
            epoch = await publisher.begin()
            heads = await self.index.heads(tenant, document_ids, epoch)
            # One may have moved to another source meanwhile.
            live = [head.document_id for head in heads if not source or head.source == source]
            return live, await publisher.replace(epoch, live) if live else epoch

    async def _revision(self, tenant: str, document_id: str, epoch: int) -> str:
        head = await self.index.head(tenant, document_id, epoch)
        return head.revision if head else ""

    @asynccontextmanager
    async def _publisher(self, tenant: str) -> AsyncIterator[Publisher]:
        async with self.leases.hold(tenant) as lease:
            # Only now: whoever moves readers to another collection holds the lease meanwhile.
            await self.index.ensure()
            yield Publisher(self.index, lease, tenant)


def _put(outcome: Outcome, prepared: Prepared, embedded: int, epoch: int) -> Put:
    chunks = len(prepared.chunks)
    reused = 0 if outcome is Outcome.UNCHANGED else chunks - embedded
    return Put(outcome, prepared.revision, chunks, embedded, reused, epoch)


def _unfinished(done: int, wanted: int) -> DeadlineExceeded:
    return DeadlineExceeded(
        f"{done:,} of {wanted:,} passages are embedded and kept; send it again to go on from there",
        reason="EMBEDDING_UNFINISHED",
        metadata={"embedded": str(done), "passages": str(wanted)},
    )
