"""An ingest stage of a few lines: documents by tenant, in memory."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from chassis import identity
from chassis.errors import Forbidden, InvalidInput
from sluice.evidence.v1 import evidence_pb2
from sluice.ingest.v1 import ingest_pb2 as pb


@dataclass
class Library:
    """Each call raises `failure` if there is one, and waits for `release`.

    `ended` is set when an upload ends that stores nothing.
    """

    held: dict[tuple[str, str], bytes] = field(default_factory=dict)
    headers: list[pb.DocumentHeader] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    failure: Exception | None = None
    release: asyncio.Event | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def put(self, parts: AsyncIterator[Any], _: object) -> pb.PutDocumentResponse:
        header, content = await self._received(parts)
        key = (identity.current().tenant, header.document_id)
        before = self.held.get(key)
        self.held[key] = content
        outcome = pb.PUT_OUTCOME_ADDED if before is None else pb.PUT_OUTCOME_UPDATED
        if before == content:
            outcome = pb.PUT_OUTCOME_UNCHANGED
        return pb.PutDocumentResponse(outcome=outcome, revision="r1", chunks=2, epoch=3)

    async def preview(self, parts: AsyncIterator[Any], _: object) -> pb.PreviewDocumentResponse:
        header, content = await self._received(parts)
        passage = evidence_pb2.Passage(
            heading_path=["One"], blocks=[evidence_pb2.Block(text=content.decode())]
        )
        chunk = pb.PreviewChunk(passage=passage, tokens=5)
        return pb.PreviewDocumentResponse(
            revision="r1", metadata=_known(header.document_id), chunks=[chunk]
        )

    async def page(self, request: pb.ListDocumentsRequest, _: object) -> pb.ListDocumentsResponse:
        await self._ready()
        tenant = identity.current().tenant
        mine = sorted(name for owner, name in self.held if owner == tenant)
        rest = [name for name in mine if name > request.page_token]
        size = request.page_size
        shown = [
            pb.Document(document_id=name, source="wiki", chunks=2, metadata=_known(name))
            for name in rest[:size]
        ]
        more = rest[size - 1] if len(rest) > size else ""
        return pb.ListDocumentsResponse(documents=shown, next_page_token=more)

    async def delete(
        self, request: pb.DeleteDocumentRequest, _: object
    ) -> pb.DeleteDocumentResponse:
        await self._ready()
        gone = self.held.pop((identity.current().tenant, request.document_id), None)
        return pb.DeleteDocumentResponse(deleted=gone is not None)

    async def _received(self, parts: AsyncIterator[Any]) -> tuple[pb.DocumentHeader, bytes]:
        self.begun.set()
        # Read to the end, whatever comes of it: gRPC drops what is left with a warning.
        try:
            first, *rest = [part async for part in parts]
            await self._ready()
            data = [_data(part) for part in rest]
        except (asyncio.CancelledError, InvalidInput):
            self.ended.set()
            raise
        self.headers.append(first.header)
        self.sizes.extend(map(len, data))
        return first.header, b"".join(data)

    async def _ready(self) -> None:
        if "ingest" not in identity.current().roles:
            raise Forbidden("this needs the role ingest", reason="ROLE_MISSING")
        if self.failure:
            raise self.failure
        if self.release:
            await self.release.wait()

    def handlers(self) -> dict[str, "grpc.RpcMethodHandler[Any, Any]"]:
        def written(reply: Any) -> bytes:  # noqa: ANN401 - any message
            sent: bytes = reply.SerializeToString()
            return sent

        many, one = grpc.stream_unary_rpc_method_handler, grpc.unary_unary_rpc_method_handler
        return {
            "PutDocument": many(self.put, pb.PutDocumentRequest.FromString, written),
            "PreviewDocument": many(self.preview, pb.PreviewDocumentRequest.FromString, written),
            "ListDocuments": one(self.page, pb.ListDocumentsRequest.FromString, written),
            "DeleteDocument": one(self.delete, pb.DeleteDocumentRequest.FromString, written),
        }


def _data(part: Any) -> bytes:  # noqa: ANN401 - of either call
    if part.WhichOneof("part") != "data":
        raise InvalidInput("only data may follow the header", field="data")
    data: bytes = part.data
    return data


def _known(title: str) -> pb.DocumentMetadata:
    return pb.DocumentMetadata(
        title=title,
        publication_state=evidence_pb2.PUBLICATION_STATE_PUBLISHED,
        access_level=evidence_pb2.ACCESS_LEVEL_TEAM,
        groups=["sre"],
    )
