"""Publishing: readers see all of a change or nothing of it, whenever the publisher dies.

Rows carry the epochs at which they are live, and one point per tenant holds the epoch that readers
are at. Everything is written for the next epoch, which nobody can see, until one write to that one
point moves the readers. What a dead publisher left is of a later epoch than the point's, which is
how the next publisher knows it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from chassis.errors import DataViolation
from corpus.epochs import LIVE
from corpus.points import StoredPassage, point_id
from services.ingest.index import Index, Row, batches
from services.ingest.lease import Lease

# Readers that began before an epoch ended still see its rows for so long, in seconds.
READERS = 60


@dataclass(frozen=True, slots=True)
class Publisher:
    """Writes one tenant's changes while it holds the lease. `clock` gives the time in seconds."""

    index: Index
    lease: Lease
    tenant: str
    clock: Callable[[], float] = time.time

    async def begin(self) -> int:
        """The epoch to publish on, with nothing of a dead publisher left."""
        await self.lease.extend()
        epoch = await self.index.begin(self.tenant)
        await self.lease.extend()
        await self.index.clear(self.tenant, epoch, round(self.clock()) - READERS)
        return epoch

    async def replace(
        self,
        epoch: int,
        document_ids: Sequence[str],
        passages: Sequence[StoredPassage] = (),
        vectors: Sequence[Sequence[float]] = (),
    ) -> int:
        """Put the passages in the place of all that the documents have; the epoch that shows it.

        The passages are all of one revision of one of the documents. Raises Conflict when another
        publisher took over, and DataViolation (PUBLISH_MISMATCH) when the index does not hold what
        was written.
        """
        rows = await self._rows(epoch + 1, passages, vectors)
        for batch in batches(rows):
            await self.lease.extend()
            await self.index.write(batch)
        await self.lease.extend()
        await self.index.retire(self.tenant, document_ids, epoch, round(self.clock()))
        await self._compare(epoch + 1, document_ids, rows)
        await self.lease.extend()
        await self.index.advance(self.tenant, epoch, self.lease.token)
        return epoch + 1

    async def _rows(
        self, epoch: int, passages: Sequence[StoredPassage], vectors: Sequence[Sequence[float]]
    ) -> list[Row]:
        if not passages:
            return []
        first = passages[0]
        # Readers may still be at an epoch that shows a retired row of the same revision.
        taken = await self.index.holds(self.tenant, first.document_id, first.revision)
        suffix = f"@{epoch}" if taken else ""
        return [
            Row(
                point_id(passage, f"{passage.chunk}{suffix}"),
                replace(passage, valid_from=epoch, valid_to=LIVE),
                vector,
            )
            for passage, vector in zip(passages, vectors, strict=True)
        ]

    async def _compare(self, epoch: int, document_ids: Sequence[str], rows: Sequence[Row]) -> None:
        found = await self.index.count_live(self.tenant, document_ids, epoch)
        same = found == len(rows)
        for batch in batches(rows):
            await self.lease.extend()
            same = same and await self.index.matches(batch)
        if not same:
            raise DataViolation(
                f"the index shows {found} rows that are not the {len(rows)} written",
                reason="PUBLISH_MISMATCH",
            )
