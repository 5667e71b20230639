"""The index as retrieve reads it. Qdrant's types and errors stay in here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from chassis import deadlines
from chassis.errors import ContractMismatch, Unavailable
from corpus import collection, epochs
from corpus.collection import DENSE
from corpus.failures import INDEX_MISSING, translated
from corpus.points import Key
from corpus.profile import EmbeddingProfile
from corpus.scope import Scope, match_any
from services.retrieve.filters import Filters

CALL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Point:
    """One point as it came back, not trusted yet."""

    id: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hit:
    """One point of a search as it came back, not trusted yet."""

    id: str
    score: float
    payload: Mapping[str, Any]


class Index:
    """One collection behind its alias.

    Calls end within CALL_SECONDS and the request's deadline. All raise what
    `corpus.failures.translated` raises, with Unavailable where nobody has set the index up yet.
    """

    def __init__(self, client: AsyncQdrantClient, alias: str, profile: EmbeddingProfile) -> None:
        self._client = client
        self._alias = alias
        self._profile = profile
        self._chunking_version = ""

    async def check(self) -> None:
        """Compare the collection with the contract. Raises ContractMismatch."""
        try:
            found = await collection.verify(self._client, self._alias, self._profile)
        except ContractMismatch as failure:
            raise _missing(failure) from failure
        self._chunking_version = found

    async def chunking_version(self) -> str:
        """The one whose passages are read, as of the last check."""
        if not self._chunking_version:
            await self.check()
        return self._chunking_version

    async def epoch(self, tenant: str) -> int:
        """The epoch that readers are at; 0 before anything was published."""
        try:
            return await epochs.read(self._client, self._alias, tenant, _seconds())
        except ContractMismatch as failure:
            raise _missing(failure) from failure

    async def nearest(
        self, vector: Sequence[float], scope: Scope, filters: Filters, limit: int
    ) -> list[Hit]:
        """The points of the scope and the filters that are nearest by cosine, best first."""
        conditions = [*scope.conditions(), *_narrowing(filters)]
        try:
            async with translated(_seconds()):
                found = await self._client.query_points(
                    self._alias,
                    query=list(vector),
                    using=DENSE,
                    query_filter=models.Filter(must=conditions),
                    limit=limit,
                    with_payload=True,
                )
        except ContractMismatch as failure:
            raise _missing(failure) from failure
        return [Hit(str(point.id), point.score, point.payload or {}) for point in found.points]

    async def among(self, point_ids: Sequence[str], scope: Scope) -> list[Point]:
        """Those of the points that are in the scope, in any order."""
        named = models.HasIdCondition(has_id=list(point_ids))
        try:
            async with translated(_seconds()):
                records, _ = await self._client.scroll(
                    self._alias,
                    models.Filter(must=[named, *scope.conditions()]),
                    limit=len(point_ids),
                    with_payload=True,
                )
        except ContractMismatch as failure:
            raise _missing(failure) from failure
        return [Point(str(record.id), record.payload or {}) for record in records]

    async def close(self) -> None:
        await self._client.close()


def _seconds() -> float:
    return deadlines.within(CALL_SECONDS).for_hop()


def _narrowing(filters: Filters) -> Iterator[models.Condition]:
    asked = {
        Key.DOCUMENT_TYPE: filters.document_types,
        Key.DOCUMENT: filters.document_ids,
        Key.AREA: filters.areas,
    }
    for key, values in asked.items():
        if values:
            yield match_any(key, list(values))


def _missing(failure: ContractMismatch) -> ContractMismatch | Unavailable:
    if failure.reason != INDEX_MISSING:
        return failure
    return Unavailable(
        "the index is not set up yet; ingest does that when it starts", reason=INDEX_MISSING
    )
