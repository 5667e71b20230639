"""An ingest stage that keeps documents in memory, behind the real edge on a real port."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc

from chassis import identity
from chassis.edge import Edge
from chassis.errors import Forbidden, InvalidInput, SluiceError
from chassis.identity import Caller, Verifier, development_key
from sluice.evidence.v1 import evidence_pb2
from sluice.ingest.v1 import ingest_pb2, ingest_pb2_grpc

PAGE = 2  # small, so that every listing has several pages


@dataclass(slots=True)
class Stage(ingest_pb2_grpc.IngestServiceServicer):
    """`failures` are raised by the next puts, in order. `calls` are the ids that were put.

    `traces` are the trace contexts that came with them; `called` is set once one came.
    """

    documents: dict[str, ingest_pb2.Document] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    failures: list[SluiceError] = field(default_factory=list)
    callers: set[Caller] = field(default_factory=set)
    traces: list[str] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""

    async def PutDocument(  # noqa: N802 - the contract's name
        self,
        requests: AsyncIterator[ingest_pb2.PutDocumentRequest],
        context: grpc.aio.ServicerContext[
            ingest_pb2.PutDocumentRequest, ingest_pb2.PutDocumentResponse
        ],
    ) -> ingest_pb2.PutDocumentResponse:
        caller = identity.current()
        if "ingest" not in caller.roles:
            raise Forbidden("the role ingest is missing")
        self.callers.add(caller)
        headers = dict(context.invocation_metadata() or ())
        self.traces.append(str(headers.get("traceparent", "")))
        header, content = ingest_pb2.DocumentHeader(), b""
        async for request in requests:
            if request.HasField("header"):
                header = request.header
            assert len(request.data) <= 1024 * 1024
            content += request.data
        self.calls.append(header.document_id)
        self.called.set()
        if self.failures:
            raise self.failures.pop(0)
        _check(header.document_id, content)
        return self._stored(header, content)

    def _stored(
        self, header: ingest_pb2.DocumentHeader, content: bytes
    ) -> ingest_pb2.PutDocumentResponse:
        known = header.document_id in self.documents
        outcome = ingest_pb2.PUT_OUTCOME_UPDATED if known else ingest_pb2.PUT_OUTCOME_ADDED
        self.contents[header.document_id] = content
        self.documents[header.document_id] = ingest_pb2.Document(
            document_id=header.document_id,
            source=header.source,
            content_hash=hashlib.sha256(content).hexdigest(),
            metadata=ingest_pb2.DocumentMetadata(
                title=header.document_id,
                access_level=evidence_pb2.ACCESS_LEVEL_TEAM,
                publication_state=evidence_pb2.PUBLICATION_STATE_PUBLISHED,
            ),
            chunks=2,
        )
        return ingest_pb2.PutDocumentResponse(outcome=outcome, chunks=2, embedded=2)

    async def PreviewDocument(  # noqa: N802
        self, requests: AsyncIterator[ingest_pb2.PreviewDocumentRequest], _context: object
    ) -> ingest_pb2.PreviewDocumentResponse:
        document_id, content = "", b""
        async for request in requests:
            document_id = document_id or request.header.document_id
            content += request.data
        _check(document_id, content)
        passage = evidence_pb2.Passage(
            heading_path=["Guide", "Start"], blocks=[evidence_pb2.Block(text=content.decode())]
        )
        chunk = ingest_pb2.PreviewChunk(passage=passage, tokens=7)
        return ingest_pb2.PreviewDocumentResponse(chunks=[chunk])

    async def ListDocuments(  # noqa: N802
        self, request: ingest_pb2.ListDocumentsRequest, _context: object
    ) -> ingest_pb2.ListDocumentsResponse:
        ids = [
            name
            for name, document in sorted(self.documents.items())
            if request.source in {"", document.source} and name > request.page_token
        ]
        page = [self.documents[name] for name in ids[:PAGE]]
        more = page[-1].document_id if len(ids) > PAGE else ""
        return ingest_pb2.ListDocumentsResponse(documents=page, next_page_token=more)

    async def DeleteDocument(  # noqa: N802
        self, request: ingest_pb2.DeleteDocumentRequest, _context: object
    ) -> ingest_pb2.DeleteDocumentResponse:
        gone = self.documents.pop(request.document_id, None)
        return ingest_pb2.DeleteDocumentResponse(deleted=gone is not None)

    async def ReconcileSource(  # noqa: N802
        self, request: ingest_pb2.ReconcileSourceRequest, _context: object
    ) -> ingest_pb2.ReconcileSourceResponse:
        if not request.document_ids and not request.allow_empty:
            raise InvalidInput("an empty source", field="document_ids")
        retired = [
            name
            for name, document in sorted(self.documents.items())
            if document.source == request.source and name not in request.document_ids
        ]
        for name in retired:
            del self.documents[name]
        return ingest_pb2.ReconcileSourceResponse(retired=retired)


def _check(document_id: str, content: bytes) -> None:
    for number, line in enumerate(content.splitlines(), start=1):
        if line.startswith(b"access: "):
            raise InvalidInput(
                f"{document_id}, line {number}: access: no such level",
                field="access",
                metadata={"line": str(number)},
            )


@asynccontextmanager
async def served() -> AsyncIterator[Stage]:
    stage = Stage()  # type: ignore[abstract] # the calls that the command line makes
    verifier = Verifier(development_key().public_key(), "ingest")

    async def verify(token: str) -> Caller:
        return verifier.verify(token)

    server = grpc.aio.server(interceptors=[Edge(verify, 60)])
    ingest_pb2_grpc.add_IngestServiceServicer_to_server(stage, server)
    stage.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield stage
    finally:
        await server.stop(None)
