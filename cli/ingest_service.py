"""The ingest stage as the command line calls it: its messages become plain values here."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import grpc

from chassis import channels
from chassis.errors import SluiceError
from cli import addresses
from cli.exits import Unreachable, nobody_there
from cli.identity import Token
from sluice.evidence.v1 import evidence_pb2
from sluice.ingest.v1 import ingest_pb2, ingest_pb2_grpc

SERVICE = "sluice.ingest.v1.IngestService"
PART_BYTES = 256 * 1024
PAGE = 1_000
# A large document on a slow model; embedding is most of it.
PUT_LIMIT = 600.0
READ_LIMIT = 30.0

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a document: `outcome` is added, updated or unchanged."""

    outcome: str
    chunks: int
    embedded: int
    reused: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """One live document. `content_hash` is the SHA-256 of its bytes in hexadecimal."""

    document_id: str
    source: str
    content_hash: str
    title: str
    version: str
    access_level: str
    groups: tuple[str, ...]
    publication_state: str
    document_type: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk as it would be stored."""

    heading_path: tuple[str, ...]
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Preview:
    """A document as it would be stored."""

    title: str
    access_level: str
    publication_state: str
    chunks: tuple[Chunk, ...]

    @property
    def tokens(self) -> int:
        return sum(chunk.tokens for chunk in self.chunks)


class IngestService:
    """Calls on one channel. Each raises SluiceErrors, Unreachable when nothing listens."""

    def __init__(self, channel: grpc.aio.Channel, address: str, token: Token) -> None:
        self._stub: ingest_pb2_grpc.IngestServiceAsyncStub = ingest_pb2_grpc.IngestServiceStub(
            channel
        )
        self._address = address
        self._token = token

    async def put(self, document_id: str, source: str, content: bytes) -> Stored:
        header = ingest_pb2.DocumentHeader(
            document_id=document_id, source=source, size=len(content)
        )
        first = ingest_pb2.PutDocumentRequest(header=header)
        rest = (ingest_pb2.PutDocumentRequest(data=part) for part in _parts(content))
        reply = await self._call(self._stub.PutDocument, chain([first], rest), PUT_LIMIT)
        outcome = ingest_pb2.PutOutcome.Name(reply.outcome).removeprefix("PUT_OUTCOME_").lower()
        return Stored(outcome, reply.chunks, reply.embedded, reply.reused)

    async def preview(self, document_id: str, content: bytes) -> Preview:
        header = ingest_pb2.DocumentHeader(document_id=document_id, source="preview")
        first = ingest_pb2.PreviewDocumentRequest(header=header)
        rest = (ingest_pb2.PreviewDocumentRequest(data=part) for part in _parts(content))
        reply = await self._call(self._stub.PreviewDocument, chain([first], rest), PUT_LIMIT)
        meta = reply.metadata
        return Preview(
            title=meta.title,
            access_level=_label(evidence_pb2.AccessLevel.Name(meta.access_level)),
            publication_state=_label(evidence_pb2.PublicationState.Name(meta.publication_state)),
            chunks=tuple(_chunk(chunk) for chunk in reply.chunks),
        )

    async def documents(self, source: str = "") -> list[Listed]:
        """Every live document of a source, of all sources when it is empty, in order of id."""
        listed: list[Listed] = []
        token = ""
        while True:
            request = ingest_pb2.ListDocumentsRequest(
                source=source, page_size=PAGE, page_token=token
            )
            reply = await self._call(self._stub.ListDocuments, request, READ_LIMIT)
            listed.extend(_listed(document) for document in reply.documents)
            token = reply.next_page_token
            if not token:
                return listed

    async def reconcile(
        self, source: str, document_ids: Sequence[str], *, allow_empty: bool
    ) -> list[str]:
        """Retire what the source no longer holds. Ids of the retired."""
        request = ingest_pb2.ReconcileSourceRequest(
            source=source, document_ids=document_ids, allow_empty=allow_empty
        )
        reply = await self._call(self._stub.ReconcileSource, request, PUT_LIMIT)
        return list(reply.retired)

    async def switch(self, *, allow_missing: bool, drop_previous: bool) -> tuple[str, str]:
        """Let readers use the collection that the process filled: its name, and the last one's."""
        request = ingest_pb2.SwitchCollectionRequest(
            allow_missing=allow_missing, drop_previous=drop_previous
        )
        reply = await self._call(self._stub.SwitchCollection, request, PUT_LIMIT)
        return reply.current, reply.previous

    async def _call(self, method: channels.Method[A, R], request: A, limit: float) -> R:
        try:
            return await channels.call(
                method, request, stage="ingest", token=self._token(), limit=limit
            )
        except SluiceError as error:
            raise self._worded(error) from error

    def _worded(self, error: SluiceError) -> SluiceError:
        return Unreachable(self._address) if nobody_there(error) else error


@asynccontextmanager
async def connected(address: str, token: Token) -> AsyncIterator[IngestService]:
    """The ingest stage at host:port."""
    # gRPC would send a call again with the token of the first try, which may have expired by then.
    async with channels.connect(
        f"dns:///{address}",
        service=SERVICE,
        idempotent=False,
        certificates=addresses.certificates(),
    ) as channel:
        yield IngestService(channel, address, token)


def _parts(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), PART_BYTES):
        yield content[start : start + PART_BYTES]


def _label(name: str) -> str:
    for prefix in ("ACCESS_LEVEL_", "PUBLICATION_STATE_"):
        name = name.removeprefix(prefix)
    return name.lower()


def _listed(document: ingest_pb2.Document) -> Listed:
    meta = document.metadata
    return Listed(
        document_id=document.document_id,
        source=document.source,
        content_hash=document.content_hash,
        title=meta.title,
        version=meta.version,
        access_level=_label(evidence_pb2.AccessLevel.Name(meta.access_level)),
        groups=tuple(meta.groups),
        publication_state=_label(evidence_pb2.PublicationState.Name(meta.publication_state)),
        document_type=meta.document_type,
        chunks=document.chunks,
    )


def _chunk(chunk: ingest_pb2.PreviewChunk) -> Chunk:
    blocks = chunk.passage.blocks
    text = "\n\n".join(f"{block.context}\n{block.text}".strip("\n") for block in blocks)
    return Chunk(tuple(chunk.passage.heading_path), text, chunk.tokens)
