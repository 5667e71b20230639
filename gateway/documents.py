"""Documents in, listed, previewed and out, for those who may ingest."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from chassis.errors import DeadlineExceeded, Exhausted, NotFound, SluiceError, Unavailable
from gateway.admission import NoRoom
from gateway.flow import OUTAGES
from gateway.outcome import Reason

# Each of those that come in is held whole by ingest.
UPLOADS = 16

log = structlog.get_logger()

L_co = TypeVar("L_co", covariant=True)  # a page of documents
D_co = TypeVar("D_co", covariant=True)  # what became of a document
V_co = TypeVar("V_co", covariant=True)  # a document as it would be stored


class BrokenOff(Exception):
    """The parts of a document end before the document does."""


@dataclass(frozen=True, slots=True)
class Heading:
    """What the caller says of a document. What is None or empty its own front matter says.

    `media_type` is empty where the id's extension tells it.
    """

    document_id: str
    source: str
    media_type: str = ""
    title: str | None = None
    version: str | None = None
    area: str | None = None
    document_type: str | None = None
    publication_state: str | None = None
    access_level: str | None = None
    groups: tuple[str, ...] = ()
    uri: str | None = None


class Shelf(Protocol[L_co, D_co, V_co]):
    """The current caller's tenant's documents. Parts that raise BrokenOff leave nothing behind."""

    async def page(self, source: str, size: int, token: str) -> L_co: ...

    async def put(self, heading: Heading, parts: AsyncIterator[bytes]) -> D_co: ...

    async def preview(self, heading: Heading, parts: AsyncIterator[bytes]) -> V_co: ...

    async def delete(self, document_id: str) -> bool: ...


class Documents(Generic[L_co, D_co, V_co]):
    """Each raises what the caller can mend, and one of OUTAGES in words of our own."""

    def __init__(self, shelf: Shelf[L_co, D_co, V_co], uploads: int = UPLOADS) -> None:
        self._shelf = shelf
        self._room = uploads

    async def page(self, source: str, size: int, token: str) -> L_co:
        with _in_our_words():
            return await self._shelf.page(source, size, token)

    async def put(self, heading: Heading, parts: AsyncIterator[bytes]) -> D_co:
        with self._place(), _in_our_words():
            return await self._shelf.put(heading, parts)

    async def preview(self, heading: Heading, parts: AsyncIterator[bytes]) -> V_co:
        with self._place(), _in_our_words():
            return await self._shelf.preview(heading, parts)

    async def delete(self, document_id: str) -> None:
        """Raises NotFound as well."""
        with _in_our_words():
            if not await self._shelf.delete(document_id):
                raise NotFound("there is no such document", reason="NO_SUCH_DOCUMENT")

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._room:
            raise NoRoom("too many documents come in at once; try again soon")
        self._room -= 1
        try:
            yield
        finally:
            self._room += 1


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except OUTAGES as error:
        log.warning("stage_unavailable", stage="ingest", reason=error.reason)
        raise _outage(error) from error


def _outage(error: SluiceError) -> SluiceError:
    if isinstance(error, DeadlineExceeded):
        return DeadlineExceeded("the time for this request is over", reason=Reason.DEADLINE)
    if isinstance(error, Exhausted):
        words = "there is no capacity to take documents in now"
        return Exhausted(words, reason=Reason.CAPACITY, retry_after=error.retry_after)
    words = "the documents cannot be reached now"
    return Unavailable(words, reason="DOCUMENTS_UNAVAILABLE", retry_after=error.retry_after)
