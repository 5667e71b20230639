"""The index as ingest writes it. Qdrant's types and errors stay in here."""

import asyncio
from array import array
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from qdrant_client import AsyncQdrantClient, models

from chassis.errors import Conflict
from corpus import bm25, collection, epochs
from corpus.collection import BM25, DENSE
from corpus.epochs import LIVE
from corpus.failures import translated
from corpus.identity import uuid_of
from corpus.points import Key, StoredPassage, from_payload, to_payload
from corpus.profile import EmbeddingProfile
from corpus.scope import live, match, match_any

# Below the time limit of a publisher's lease, so that nothing is written after it lapsed.
CALL_SECONDS: Final = 5.0
BATCH_BYTES: Final = 4 * 1024 * 1024
BATCH_ROWS: Final = 256
NAMES: Final = 500  # document ids in one condition
HASHES: Final = 256  # input hashes in one condition, and vectors in one reply
PAGE: Final = 1_000

_FLOAT_BYTES = 4
_ROW_BYTES = 2_048  # what a row's short fields take at most in practice


@dataclass(frozen=True, slots=True)
class Row:
    """One point to be written."""

    id: str
    passage: StoredPassage
    vector: Sequence[float]


class Index:
    """One collection: the one behind the alias, or one to be, `beside` it.

    Every call takes at most CALL_SECONDS. All raise what `corpus.failures.translated` raises.
    """

    def __init__(
        self,
        client: AsyncQdrantClient,
        alias: str,
        profile: EmbeddingProfile,
        chunking_version: str,
        *,
        beside: bool = False,
    ) -> None:
        self._client = client
        self._alias = alias
        self._own = collection.collection_name(alias, profile, chunking_version)
        self._name = self._own if beside else alias
        self._beside = beside
        self._profile = profile
        self._chunking_version = chunking_version

    @property
    def name(self) -> str:
        """The collection's own name, which no other profile or chunking version has."""
        return self._own

    async def ensure(self) -> None:
        """Set the collection up where it is not. Raises ContractMismatch if it is another's."""
        ensure = collection.ensure_beside if self._beside else collection.ensure
        await ensure(self._client, self._alias, self._profile, self._chunking_version)

    async def close(self) -> None:
        await self._client.close()

    async def epoch(self, tenant: str) -> int:
        """The epoch that readers are at; 0 before anything was published."""
        return await epochs.read(self._client, self._name, tenant, CALL_SECONDS)

    async def begin(self, tenant: str) -> int:
        """The epoch, whose point exists afterwards; one that is there is not touched."""
        epoch = await self.epoch(tenant)
        if epoch > 0:
            return epoch
        point = models.PointStruct(
            id=epochs.point_id(tenant),
            vector={},
            payload={epochs.TENANT: tenant, epochs.EPOCH: 0, epochs.PUBLISHER: ""},
        )
        async with translated(CALL_SECONDS):
            # A publisher that comes late must not set readers back to the beginning.
            await self._client.upsert(
                self._name, [point], update_mode=models.UpdateMode.INSERT_ONLY
            )
        return await self.epoch(tenant)

    async def clear(self, tenant: str, epoch: int, before: int) -> None:
        """Undo what a publisher left that never got to its epoch: rows first, then marks.

        And remove rows that no reader can see and that were retired before a time in seconds.
        """
        mine = match(Key.TENANT, tenant)
        later = models.FieldCondition(key=Key.VALID_FROM, range=models.Range(gt=epoch))
        marked = models.FieldCondition(key=Key.VALID_TO, range=models.Range(gt=epoch, lt=LIVE))
        ended = models.FieldCondition(key=Key.VALID_TO, range=models.Range(lte=epoch))
        long_ago = models.FieldCondition(key=Key.RETIRED_AT, range=models.Range(lt=before))
        await self._update(
            _deletion(mine, later),
            _marking(LIVE, 0, mine, marked),
            _deletion(mine, ended, long_ago),
        )

    async def holds(self, tenant: str, document_id: str, revision: str) -> bool:
        """Whether rows of that revision are there, live or retired."""
        found = await self._count(
            match(Key.TENANT, tenant),
            match(Key.DOCUMENT, document_id),
            match(Key.REVISION, revision),
        )
        return found > 0

    async def keep(self, tenant: str, vectors: Mapping[str, Sequence[float]], until: int) -> None:
        """Store vectors by input hash that no passage has yet; `until` is in seconds.

        Their rows are such as were retired before they were ever live, so that no reader sees them
        and `clear` removes them once their time is over.
        """
        for names in _sliced(list(vectors), BATCH_ROWS):
            points = [
                models.PointStruct(
                    id=uuid_of("vector", tenant, name),
                    vector={DENSE: list(vectors[name])},
                    payload={
                        Key.TENANT.value: tenant,
                        Key.INPUT_HASH.value: name,
                        Key.VALID_TO.value: 0,
                        Key.RETIRED_AT.value: until,
                    },
                )
                for name in names
            ]
            async with translated(CALL_SECONDS):
                await self._client.upsert(self._name, points, wait=True)

    async def vectors(self, tenant: str, hashes: Sequence[str]) -> dict[str, Sequence[float]]:
        """Vectors of the tenant's passages, live or retired, and kept ones, by input hash."""
        found: dict[str, Sequence[float]] = {}
        for names in _sliced(list(dict.fromkeys(hashes)), HASHES):
            await self._find_vectors(tenant, names, found)
        return found

    async def _find_vectors(
        self, tenant: str, hashes: Sequence[str], found: dict[str, Sequence[float]]
    ) -> None:
        """Add the vectors of `hashes` to those found; a text of many documents has many rows."""
        conditions = [match(Key.TENANT, tenant), match_any(Key.INPUT_HASH, list(hashes))]
        offset = None
        while not found.keys() >= set(hashes):
            async with translated(CALL_SECONDS):
                records, offset = await self._client.scroll(
                    self._name,
                    models.Filter(must=conditions),
                    limit=HASHES,
                    offset=offset,
                    with_payload=[Key.INPUT_HASH.value],
                    with_vectors=[DENSE],
                )
            found.update(filter(None, map(_known_vector, records)))
            if offset is None:
                return

    async def write(self, rows: Sequence[Row]) -> None:
        """Write the rows; a batch as `batches` makes them is within every size limit."""
        points = await asyncio.to_thread(lambda: [_point(row) for row in rows])
        async with translated(CALL_SECONDS):
            await self._client.upsert(self._name, points, wait=True)

    async def matches(self, rows: Sequence[Row]) -> bool:
        """Whether each row reads back as it was written."""
        async with translated(CALL_SECONDS):
            found = await self._client.retrieve(
                self._name, [row.id for row in rows], with_payload=True
            )
        payloads = {str(record.id): record.payload for record in found}
        return payloads == {row.id: to_payload(row.passage) for row in rows}

    async def retire(self, tenant: str, document_ids: Sequence[str], epoch: int, now: int) -> None:
        """Let the documents' rows that are live at `epoch` end with the next one.

        `now` is in whole seconds of the epoch time.
        """
        for names in _sliced(document_ids, NAMES):
            mine, these = match(Key.TENANT, tenant), match_any(Key.DOCUMENT, names)
            await self._update(_marking(epoch + 1, now, mine, these, *live(epoch)))

    async def count_live(self, tenant: str, document_ids: Sequence[str], epoch: int) -> int:
        """Rows of the documents that readers at `epoch` can see."""
        counts = [
            await self._count(
                match(Key.TENANT, tenant), match_any(Key.DOCUMENT, names), *live(epoch)
            )
            for names in _sliced(document_ids, NAMES)
        ]
        return sum(counts)

    async def advance(self, tenant: str, epoch: int, publisher: str, to: int | None = None) -> None:
        """Move readers from `epoch` to the next one, or to a later one, in one write to one point.

        The condition is part of the write: nobody who comes late moves them. Raises Conflict
        (EPOCH_MOVED).
        """
        following = epoch + 1 if to is None else to
        identity = epochs.point_id(tenant)
        unmoved = models.Filter(
            must=[models.HasIdCondition(has_id=[identity]), match(epochs.EPOCH, epoch)]
        )
        async with translated(CALL_SECONDS):
            await self._client.set_payload(
                self._name,
                {epochs.EPOCH: following, epochs.PUBLISHER: publisher},
                unmoved,
                wait=True,
            )
            found = await self._client.retrieve(self._name, [identity], with_payload=True)
        payload = (found[0].payload if found else None) or {}
        if payload.get(epochs.EPOCH) != following or payload.get(epochs.PUBLISHER) != publisher:
            raise Conflict("another publisher moved the epoch", reason="EPOCH_MOVED")

    async def head(self, tenant: str, document_id: str, epoch: int) -> StoredPassage | None:
        """The first passage of a document that is live at `epoch`."""
        found = await self.heads(tenant, [document_id], epoch)
        return found[0] if found else None

    async def heads(
        self, tenant: str, document_ids: Sequence[str], epoch: int
    ) -> list[StoredPassage]:
        """The first passages of the documents that are live at `epoch`, in order of id."""
        found: list[StoredPassage] = []
        for names in _sliced(document_ids, NAMES):
            condition = models.Filter(
                must=[*_first_rows(tenant, epoch), match_any(Key.DOCUMENT, names)]
            )
            async with translated(CALL_SECONDS):
                records, _ = await self._client.scroll(
                    self._name, condition, limit=len(names), with_payload=True
                )
            found += [from_payload(str(record.id), record.payload) for record in records]
        return sorted(found, key=lambda passage: passage.document_id)

    async def document_ids(self, tenant: str, source: str, epoch: int) -> list[str]:
        """Ids of the documents that are live at `epoch`, in order; of all sources for ""."""
        conditions = _first_rows(tenant, epoch)
        if source:
            conditions.append(match(Key.SOURCE, source))
        return sorted(
            [payload[Key.DOCUMENT] async for payload in self._scrolled(conditions, Key.DOCUMENT)]
        )

    async def tenants(self) -> list[str]:
        """Everybody who ever published, in order; nobody before the collection is set up."""
        if not self._beside and not await collection.behind(self._client, self._alias):
            return []
        published = models.FieldCondition(key=epochs.EPOCH, range=models.Range(gte=0))
        return sorted(
            [payload[epochs.TENANT] async for payload in self._scrolled([published], epochs.TENANT)]
        )

    async def succeed(self) -> str:
        """Let readers use this collection; the name of the one that they used before.

        Empty where there was none, or where it is this one already.
        """
        before = await collection.behind(self._client, self._alias)
        await collection.switch(self._client, self._alias, self._own)
        return "" if before == self._own else before

    async def drop(self, name: str) -> None:
        """Delete another collection, such as the one that this one succeeded."""
        await collection.drop(self._client, name)

    async def _scrolled(
        self, conditions: list[models.Condition], field: str
    ) -> AsyncIterator[dict[str, Any]]:
        offset = None
        while True:
            async with translated(CALL_SECONDS):
                records, offset = await self._client.scroll(
                    self._name,
                    models.Filter(must=conditions),
                    limit=PAGE,
                    offset=offset,
                    with_payload=[field],
                )
            for record in records:
                yield record.payload or {}
            if offset is None:
                return

    async def _count(self, *conditions: models.Condition) -> int:
        async with translated(CALL_SECONDS):
            found = await self._client.count(
                self._name, models.Filter(must=list(conditions)), exact=True
            )
        return found.count

    async def _update(self, *operations: models.UpdateOperation) -> None:
        """One after the other."""
        async with translated(CALL_SECONDS):
            await self._client.batch_update_points(self._name, list(operations), wait=True)


def batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """The rows in runs of at most BATCH_ROWS and about BATCH_BYTES, at least one a run."""
    first, size = 0, 0
    for position, row in enumerate(rows):
        weight = _weight(row)
        if position > first and (size + weight > BATCH_BYTES or position - first == BATCH_ROWS):
            yield rows[first:position]
            first, size = position, 0
        size += weight
    if rows:
        yield rows[first:]


def _point(row: Row) -> models.PointStruct:
    terms = bm25.passage_vector(row.passage)
    sparse = models.SparseVector(indices=list(terms.indices), values=list(terms.values))
    return models.PointStruct(
        id=row.id,
        vector={DENSE: list(row.vector), BM25: sparse},
        payload=to_payload(row.passage),
    )


def _deletion(*conditions: models.Condition) -> models.DeleteOperation:
    chosen = models.Filter(must=list(conditions))
    return models.DeleteOperation(delete=models.FilterSelector(filter=chosen))


def _marking(valid_to: int, now: int, *conditions: models.Condition) -> models.SetPayloadOperation:
    ends = {Key.VALID_TO.value: valid_to, Key.RETIRED_AT.value: now}
    chosen = models.Filter(must=list(conditions))
    return models.SetPayloadOperation(set_payload=models.SetPayload(payload=ends, filter=chosen))


def _weight(row: Row) -> int:
    text = sum(len(block.readable.encode()) for block in row.passage.blocks)
    return text + _FLOAT_BYTES * len(row.vector) + _ROW_BYTES


def _known_vector(record: models.Record) -> tuple[str, Sequence[float]] | None:
    name = (record.payload or {}).get(Key.INPUT_HASH)
    vector = record.vector.get(DENSE) if isinstance(record.vector, dict) else None
    if not isinstance(name, str) or not isinstance(vector, list):
        return None
    return name, array("f", cast("list[float]", vector))


def _first_rows(tenant: str, epoch: int) -> list[models.Condition]:
    return [match(Key.TENANT, tenant), match(Key.CHUNK, 0), *live(epoch)]


def _sliced(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for first in range(0, len(names), size):
        yield list(names[first : first + size])
