"""The index as ingest writes it. Qdrant's types and errors stay in here."""

import asyncio
from array import array
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chassis.errors import Conflict
from corpus import bm25, collection, epochs
from corpus.collection import BM25, DENSE, dense_vector
from corpus.epochs import LIVE
from corpus.failures import translated
from corpus.fields import Fields, to_values
from corpus.identity import uuid_of
from corpus.points import Key, StoredPassage, from_fields, to_payload
from corpus.profile import EmbeddingProfile
from corpus.qdrant import Qdrant, wire
from corpus.scope import has_id, live, match, match_any, within

# Below the time limit of a publisher's lease, so that nothing is written after it lapsed.
CALL_SECONDS: Final = 5.0
BATCH_BYTES: Final = 4 * 1024 * 1024
BATCH_ROWS: Final = 256
NAMES: Final = 500  # document ids in one condition
HASHES: Final = 256  # input hashes in one condition, and vectors in one reply
PAGE: Final = 1_000

_WHOLE = wire.WithPayloadSelector(enable=True)
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
        qdrant: Qdrant,
        alias: str,
        profile: EmbeddingProfile,
        chunking_version: str,
        *,
        beside: bool = False,
    ) -> None:
        self._qdrant = qdrant
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
        await ensure(self._qdrant, self._alias, self._profile, self._chunking_version)

    async def close(self) -> None:
        await self._qdrant.close()

    async def epoch(self, tenant: str) -> int:
        """The epoch that readers are at; 0 before anything was published."""
        return await epochs.read(self._qdrant, self._name, tenant, CALL_SECONDS)

    async def begin(self, tenant: str) -> int:
        """The epoch, whose point exists afterwards; one that is there is not touched."""
        epoch = await self.epoch(tenant)
        if epoch > 0:
            return epoch
        point = _made(
            epochs.point_id(tenant),
            {},
            {epochs.TENANT: tenant, epochs.EPOCH: 0, epochs.PUBLISHER: ""},
        )
        # A publisher that comes late must not set readers back to the beginning.
        await self._upsert([point], wire.UpdateMode.InsertOnly)
        return await self.epoch(tenant)

    async def clear(self, tenant: str, epoch: int, before: int) -> None:
        """Undo what a publisher left that never got to its epoch: rows first, then marks.

        And remove rows that no reader can see and that were retired before a time in seconds.
        """
        mine = match(Key.TENANT, tenant)
        later = within(Key.VALID_FROM, gt=epoch)
        marked = within(Key.VALID_TO, gt=epoch, lt=LIVE)
        ended = within(Key.VALID_TO, lte=epoch)
        long_ago = within(Key.RETIRED_AT, lt=before)
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
                _made(
                    uuid_of("vector", tenant, name),
                    {DENSE: _dense(vectors[name])},
                    {
                        Key.TENANT.value: tenant,
                        Key.INPUT_HASH.value: name,
                        Key.VALID_TO.value: 0,
                        Key.RETIRED_AT.value: until,
                    },
                )
                for name in names
            ]
            await self._upsert(points)

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
        request = wire.ScrollPoints(
            collection_name=self._name,
            filter=wire.Filter(must=[match(Key.TENANT, tenant), match_any(Key.INPUT_HASH, hashes)]),
            limit=HASHES,
            with_payload=_only(Key.INPUT_HASH),
            with_vectors=wire.WithVectorsSelector(include=wire.VectorsSelector(names=[DENSE])),
        )
        while not found.keys() >= set(hashes):
            found.update(filter(None, map(_known_vector, await self._scroll(request))))
            if not request.HasField("offset"):
                return

    async def write(self, rows: Sequence[Row]) -> None:
        """Write the rows; a batch as `batches` makes them is within every size limit."""
        points = await asyncio.to_thread(lambda: [_point(row) for row in rows])
        await self._upsert(points)

    async def matches(self, rows: Sequence[Row]) -> bool:
        """Whether each row reads back as it was written."""
        points = await self._get([row.id for row in rows])
        found = {point.id.uuid: dict(point.payload) for point in points}
        return found == {row.id: to_values(to_payload(row.passage)) for row in rows}

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
        moved = to_values({epochs.EPOCH: following, epochs.PUBLISHER: publisher})
        request = wire.SetPayloadPoints(
            collection_name=self._name,
            wait=True,
            payload=moved,
            points_selector=_selected([has_id(identity), match(epochs.EPOCH, epoch)]),
        )
        async with translated(CALL_SECONDS):
            await self._qdrant.points.SetPayload(request)
            found = await self._get([identity])
        if not found or any(found[0].payload[name] != value for name, value in moved.items()):
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
            these = match_any(Key.DOCUMENT, names)
            request = wire.ScrollPoints(
                collection_name=self._name,
                filter=wire.Filter(must=[*_first_rows(tenant, epoch), these]),
                limit=len(names),
                with_payload=_WHOLE,
            )
            points = await self._scroll(request)
            found += [from_fields(Fields(point.id.uuid, point.payload)) for point in points]
        return sorted(found, key=lambda passage: passage.document_id)

    async def document_ids(self, tenant: str, source: str, epoch: int) -> list[str]:
        """Ids of the documents that are live at `epoch`, in order; of all sources for ""."""
        conditions = _first_rows(tenant, epoch)
        if source:
            conditions.append(match(Key.SOURCE, source))
        return sorted([name async for name in self._texts(conditions, Key.DOCUMENT)])

    async def tenants(self) -> list[str]:
        """Everybody who ever published, in order; nobody before the collection is set up."""
        if not self._beside and not await collection.behind(self._qdrant, self._alias):
            return []
        published = [within(epochs.EPOCH, gte=0)]
        return sorted([name async for name in self._texts(published, epochs.TENANT)])

    async def succeed(self) -> str:
        """Let readers use this collection; the name of the one that they used before.

        Empty where there was none, or where it is this one already.
        """
        before = await collection.behind(self._qdrant, self._alias)
        await collection.switch(self._qdrant, self._alias, self._own)
        return "" if before == self._own else before

    async def drop(self, name: str) -> None:
        """Delete another collection, such as the one that this one succeeded."""
        await collection.drop(self._qdrant, name)

    async def _texts(self, conditions: Sequence[wire.Condition], key: str) -> AsyncIterator[str]:
        """A field of all points that meet the conditions."""
        request = wire.ScrollPoints(
            collection_name=self._name,
            filter=wire.Filter(must=conditions),
            limit=PAGE,
            with_payload=_only(key),
        )
        while True:
            for point in await self._scroll(request):
                yield Fields(point.id.uuid, point.payload).text(key)
            if not request.HasField("offset"):
                return

    async def _scroll(self, request: wire.ScrollPoints) -> Sequence[wire.RetrievedPoint]:
        """The page asked for; the request then asks for the next one, if its offset is set."""
        async with translated(CALL_SECONDS):
            reply: wire.ScrollResponse = await self._qdrant.points.Scroll(request)
        request.ClearField("offset")
        if reply.HasField("next_page_offset"):
            request.offset.CopyFrom(reply.next_page_offset)
        return reply.result

    async def _get(self, point_ids: Sequence[str]) -> Sequence[wire.RetrievedPoint]:
        request = wire.GetPoints(
            collection_name=self._name,
            ids=[wire.PointId(uuid=identity) for identity in point_ids],
            with_payload=_WHOLE,
        )
        async with translated(CALL_SECONDS):
            reply: wire.GetResponse = await self._qdrant.points.Get(request)
        return reply.result

    async def _count(self, *conditions: wire.Condition) -> int:
        request = wire.CountPoints(
            collection_name=self._name, filter=wire.Filter(must=conditions), exact=True
        )
        async with translated(CALL_SECONDS):
            reply: wire.CountResponse = await self._qdrant.points.Count(request)
        return reply.result.count

    async def _upsert(
        self,
        points: Sequence[wire.PointStruct],
        mode: "wire.UpdateMode.ValueType | None" = None,
    ) -> None:
        request = wire.UpsertPoints(
            collection_name=self._name, wait=True, points=points, update_mode=mode
        )
        async with translated(CALL_SECONDS):
            await self._qdrant.points.Upsert(request)

    async def _update(self, *operations: wire.PointsUpdateOperation) -> None:
        """One after the other."""
        request = wire.UpdateBatchPoints(
            collection_name=self._name, wait=True, operations=operations
        )
        async with translated(CALL_SECONDS):
            await self._qdrant.points.UpdateBatch(request)


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


def _point(row: Row) -> wire.PointStruct:
    terms = bm25.passage_vector(row.passage)
    sparse = wire.SparseVector(indices=terms.indices, values=terms.values)
    vectors = {DENSE: _dense(row.vector), BM25: wire.Vector(sparse=sparse)}
    return _made(row.id, vectors, to_payload(row.passage))


def _made(
    identity: str, vectors: Mapping[str, wire.Vector], payload: Mapping[str, object]
) -> wire.PointStruct:
    return wire.PointStruct(
        id=wire.PointId(uuid=identity),
        vectors=wire.Vectors(vectors=wire.NamedVectors(vectors=vectors)),
        payload=to_values(payload),
    )


def _dense(vector: Sequence[float]) -> wire.Vector:
    return wire.Vector(dense=wire.DenseVector(data=vector))


def _deletion(*conditions: wire.Condition) -> wire.PointsUpdateOperation:
    delete = wire.PointsUpdateOperation.DeletePoints(points=_selected(conditions))
    return wire.PointsUpdateOperation(delete_points=delete)


def _marking(valid_to: int, now: int, *conditions: wire.Condition) -> wire.PointsUpdateOperation:
    ends = to_values({Key.VALID_TO.value: valid_to, Key.RETIRED_AT.value: now})
    mark = wire.PointsUpdateOperation.SetPayload(
        payload=ends, points_selector=_selected(conditions)
    )
    return wire.PointsUpdateOperation(set_payload=mark)


def _selected(conditions: Sequence[wire.Condition]) -> wire.PointsSelector:
    return wire.PointsSelector(filter=wire.Filter(must=conditions))


def _weight(row: Row) -> int:
    text = sum(len(block.readable.encode()) for block in row.passage.blocks)
    return text + _FLOAT_BYTES * len(row.vector) + _ROW_BYTES


def _known_vector(point: wire.RetrievedPoint) -> tuple[str, Sequence[float]] | None:
    name, vector = point.payload[Key.INPUT_HASH].string_value, dense_vector(point)
    return (name, array("f", vector)) if name and vector else None


def _only(key: str) -> wire.WithPayloadSelector:
    return wire.WithPayloadSelector(include=wire.PayloadIncludeSelector(fields=[key]))


def _first_rows(tenant: str, epoch: int) -> list[wire.Condition]:
    return [match(Key.TENANT, tenant), match(Key.CHUNK, 0), *live(epoch)]


def _sliced(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for first in range(0, len(names), size):
        yield list(names[first : first + size])
