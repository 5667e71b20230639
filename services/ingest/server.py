"""The RPC face of the ingest stage."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import structlog

from chassis import identity
from chassis.channels import MESSAGE_BYTES
from chassis.errors import ContractMismatch, Forbidden
from chassis.settings import PREFIX
from services.ingest import wire
from services.ingest.library import Library
from services.ingest.prepare import Header, check, check_id, check_source
from services.ingest.succession import Succession
from sluice.ingest.v1 import ingest_pb2 as pb
from sluice.ingest.v1.ingest_pb2_grpc import IngestServiceServicer

ROLE = "ingest"
OPERATOR = "operator"

log = structlog.get_logger()


class IngestServicer(IngestServiceServicer):
    """`document_bytes` is the size of the largest document.

    `succession` is there in a process that fills a collection to be.
    """

    def __init__(
        self, library: Library, document_bytes: int, succession: Succession | None = None
    ) -> None:
        self._library = library
        self._document_bytes = document_bytes
        self._succession = succession

    async def PutDocument(  # noqa: N802 - the contract's name
        self,
        request_iterator: AsyncIterator[pb.PutDocumentRequest],
        context: grpc.aio.ServicerContext[pb.PutDocumentRequest, pb.PutDocumentResponse],  # noqa: ARG002
    ) -> pb.PutDocumentResponse:
        tenant = _tenant()
        header, data = await self._received(request_iterator)
        done = await self._library.put(tenant, header, data)
        log.info(
            "document_put",
            document=header.document_id,
            outcome=done.outcome.name,
            chunks=done.chunks,
            embedded=done.embedded,
            reused=done.reused,
            epoch=done.epoch,
        )
        return wire.put_response(done)

    async def PreviewDocument(  # noqa: N802 - the contract's name
        self,
        request_iterator: AsyncIterator[pb.PreviewDocumentRequest],
        context: grpc.aio.ServicerContext[pb.PreviewDocumentRequest, pb.PreviewDocumentResponse],  # noqa: ARG002
    ) -> pb.PreviewDocumentResponse:
        tenant = _tenant()
        header, data = await self._received(request_iterator)
        prepared = await self._library.prepare(tenant, header, data)
        # As large as the document: other calls do not wait for it.
        return await asyncio.to_thread(wire.preview_response, prepared, MESSAGE_BYTES)

    async def DeleteDocument(  # noqa: N802 - the contract's name
        self,
        request: pb.DeleteDocumentRequest,
        context: grpc.aio.ServicerContext[pb.DeleteDocumentRequest, pb.DeleteDocumentResponse],  # noqa: ARG002
    ) -> pb.DeleteDocumentResponse:
        tenant = _tenant()
        check_id(request.document_id, "document_id")
        deleted, epoch = await self._library.delete(tenant, request.document_id)
        log.info("document_deleted", document=request.document_id, found=deleted, epoch=epoch)
        return pb.DeleteDocumentResponse(deleted=deleted, epoch=epoch)

    async def ListDocuments(  # noqa: N802 - the contract's name
        self,
        request: pb.ListDocumentsRequest,
        context: grpc.aio.ServicerContext[pb.ListDocumentsRequest, pb.ListDocumentsResponse],  # noqa: ARG002
    ) -> pb.ListDocumentsResponse:
        tenant = _tenant()
        after, size = wire.page_start(request), wire.page_size(request)
        page = await self._library.page(tenant, request.source, after, size)
        return pb.ListDocumentsResponse(
            documents=[wire.document(head) for head in page.heads],
            next_page_token=wire.page_token(page.heads[-1].document_id) if page.more else "",
        )

    async def ReconcileSource(  # noqa: N802 - the contract's name
        self,
        request: pb.ReconcileSourceRequest,
        context: grpc.aio.ServicerContext[pb.ReconcileSourceRequest, pb.ReconcileSourceResponse],  # noqa: ARG002
    ) -> pb.ReconcileSourceResponse:
        tenant = _tenant()
        check_source(request.source, "source")
        retired, epoch = await self._library.reconcile(
            tenant, request.source, request.document_ids, allow_empty=request.allow_empty
        )
        log.info("source_reconciled", source=request.source, retired=len(retired), epoch=epoch)
        return pb.ReconcileSourceResponse(retired=retired, epoch=epoch)

    async def SwitchCollection(  # noqa: N802 - the contract's name
        self,
        request: pb.SwitchCollectionRequest,
        context: grpc.aio.ServicerContext[pb.SwitchCollectionRequest, pb.SwitchCollectionResponse],  # noqa: ARG002
    ) -> pb.SwitchCollectionResponse:
        tenant = _tenant(OPERATOR)
        if self._succession is None:
            raise ContractMismatch(
                "this process writes what readers use already: start one to reindex, with"
                f" {PREFIX}REINDEX=true",
                reason="NOT_REINDEXING",
            )
        done = await self._succession.switch(
            tenant, allow_missing=request.allow_missing, drop_previous=request.drop_previous
        )
        log.info("collection_switched", now=done.current, before=done.previous)
        return pb.SwitchCollectionResponse(
            current=done.current, previous=done.previous, missing=done.missing
        )

    async def _received(self, parts: AsyncIterator[wire.Part]) -> tuple[Header, bytes]:
        header = await wire.header(parts)
        check(header)
        return header, await wire.data(parts, header, self._document_bytes)


def _tenant(role: str = ROLE) -> str:
    caller = identity.current()
    if role not in caller.roles:
        raise Forbidden(f"this needs the role {role}", reason="ROLE_MISSING")
    return caller.tenant
