"""Vectors of a document under way: a call that ends before its document leaves them to the next."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from chassis.errors import SluiceError
from services.ingest.index import Index

EVERY = 10.0  # seconds of embedding that are lost at most when the process is killed
LASTING = 24 * 3_600  # seconds for which they are kept

log = structlog.get_logger()


@dataclass(slots=True)
class Keep:
    """What one call has embedded and not stored yet. `clock` gives the time in seconds.

    Where the index does not take them they are only lost: storing them is never the document's own
    failure.
    """

    index: Index
    tenant: str
    clock: Callable[[], float] = time.time
    _waiting: dict[str, Sequence[float]] = field(default_factory=dict)
    _stored: float = field(init=False)

    def __post_init__(self) -> None:
        self._stored = self.clock()

    async def add(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """Vectors by input hash. Most documents are done before any is stored."""
        self._waiting.update(vectors)
        if self.clock() - self._stored >= EVERY:
            await self.store()

    async def store(self) -> None:
        """Store what waits."""
        now = self.clock()
        try:
            await self.index.keep(self.tenant, self._waiting, round(now) + LASTING)
        except SluiceError as failure:
            log.warning("vectors_not_kept", vectors=len(self._waiting), reason=failure.reason)
        else:
            self._waiting.clear()
        self._stored = now
