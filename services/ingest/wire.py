"""The contract's messages as the domain's nouns, and back. What can never work is refused here."""

import base64
import binascii
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from corpus.points import Kind, State, StoredBlock, StoredPassage, point_id
from corpus.suspicion import suspected_injection
from services.ingest import metadata
from services.ingest.chunk import Chunk
from services.ingest.document import Format, Metadata
from services.ingest.library import Outcome, Put
from services.ingest.metadata import Given, NotAllowed
from services.ingest.prepare import Header, Prepared
from sluice.evidence.v1 import evidence_pb2 as evidence
from sluice.ingest.v1 import ingest_pb2 as pb

PART_BYTES = 1024 * 1024
PAGE_SIZE = 100
LARGEST_PAGE = 1_000
_AROUND_CHUNK = 8  # most bytes of a chunk's tag and length in a message

N = TypeVar("N")
T = TypeVar("T")
Part = pb.PutDocumentRequest | pb.PreviewDocumentRequest

_FORMATS = {
    pb.DOCUMENT_FORMAT_UNSPECIFIED: None,
    pb.DOCUMENT_FORMAT_MARKDOWN: Format.MARKDOWN,
    pb.DOCUMENT_FORMAT_TEXT: Format.TEXT,
    pb.DOCUMENT_FORMAT_HTML: Format.HTML,
    pb.DOCUMENT_FORMAT_PDF: Format.PDF,
    pb.DOCUMENT_FORMAT_DOCX: Format.DOCX,
}
_STATES = {
    evidence.PUBLICATION_STATE_DRAFT: State.DRAFT,
    evidence.PUBLICATION_STATE_PUBLISHED: State.PUBLISHED,
}
_STATE_NUMBERS = {state: number for number, state in _STATES.items()}
_LEVELS = {
    evidence.ACCESS_LEVEL_PUBLIC: AccessLevel.PUBLIC,
    evidence.ACCESS_LEVEL_TEAM: AccessLevel.TEAM,
    evidence.ACCESS_LEVEL_RESTRICTED: AccessLevel.RESTRICTED,
}
_LEVEL_NUMBERS = {level: number for number, level in _LEVELS.items()}
_KINDS = {
    Kind.PARAGRAPH: evidence.BLOCK_KIND_PARAGRAPH,
    Kind.LIST: evidence.BLOCK_KIND_LIST,
    Kind.TABLE: evidence.BLOCK_KIND_TABLE,
    Kind.CODE: evidence.BLOCK_KIND_CODE,
}
_OUTCOMES = {
    Outcome.ADDED: pb.PUT_OUTCOME_ADDED,
    Outcome.UPDATED: pb.PUT_OUTCOME_UPDATED,
    Outcome.UNCHANGED: pb.PUT_OUTCOME_UNCHANGED,
}


async def header(parts: AsyncIterator[Part]) -> Header:
    """The header, which is the first part. Raises InvalidInput."""
    first = await anext(parts, None)
    if first is None or first.WhichOneof("part") != "header":
        raise InvalidInput("the first message must be the header", field="header")
    sent = first.header
    if sent.format not in _FORMATS:
        raise InvalidInput("no such format", field="header.format")
    return Header(
        document_id=sent.document_id,
        source=sent.source,
        format=_FORMATS[sent.format],
        given=_given(sent.metadata) if sent.HasField("metadata") else Given(),
        size=sent.size if sent.HasField("size") else None,
    )


async def data(parts: AsyncIterator[Part], header: Header, limit: int) -> bytes:
    """The bytes after the header.

    Raises InvalidInput as soon as they are more than `limit`, and when they are not those that the
    header promised.
    """
    name = header.document_id
    received = bytearray()
    async for part in parts:
        if part.WhichOneof("part") != "data":
            raise InvalidInput("only data may follow the header", field="data")
        if len(part.data) > PART_BYTES:
            raise InvalidInput(
                f"{name}: a part of {len(part.data):,} bytes; {PART_BYTES:,} are allowed",
                field="data",
                reason="PART_TOO_LARGE",
            )
        if len(received) + len(part.data) > limit:
            raise InvalidInput(
                f"{name}: more than {limit:,} bytes", field="data", reason="DOCUMENT_TOO_LARGE"
            )
        received += part.data
    if header.size is not None and header.size != len(received):
        raise InvalidInput(
            f"{name}: {len(received):,} bytes came of {header.size:,}; send it again",
            field="header.size",
            reason="INCOMPLETE",
        )
    return bytes(received)


def put_response(done: Put) -> pb.PutDocumentResponse:
    return pb.PutDocumentResponse(
        outcome=_OUTCOMES[done.outcome],
        revision=done.revision,
        chunks=done.chunks,
        embedded=done.embedded,
        reused=done.reused,
        epoch=done.epoch,
    )


def preview_response(prepared: Prepared, limit: int) -> pb.PreviewDocumentResponse:
    """What would be stored. Raises InvalidInput (PREVIEW_TOO_LARGE) above `limit` bytes."""
    response = pb.PreviewDocumentResponse(
        revision=prepared.revision, metadata=_metadata(prepared.document.metadata)
    )
    size = response.ByteSize()
    for passage, chunk in zip(prepared.passages, prepared.chunks, strict=True):
        shown = _preview_chunk(passage, chunk)
        size += shown.ByteSize() + _AROUND_CHUNK
        if size > limit:
            raise InvalidInput(
                f"{prepared.document.id}: too large to be shown, in {len(prepared.chunks):,}"
                " chunks; it can be stored",
                field="data",
                reason="PREVIEW_TOO_LARGE",
            )
        response.chunks.append(shown)
    return response


def document(head: StoredPassage) -> pb.Document:
    """A live document, from the first of its passages."""
    return pb.Document(
        document_id=head.document_id,
        source=head.source,
        revision=head.revision,
        content_hash=head.content_hash,
        metadata=_metadata(
            Metadata(
                title=head.title,
                version=head.version,
                area=head.area,
                document_type=head.document_type,
                state=head.state,
                access=head.access,
                groups=head.groups,
                uri=head.uri,
            )
        ),
        chunks=head.chunks,
    )


def page_size(request: pb.ListDocumentsRequest) -> int:
    """Raises InvalidInput."""
    if not 0 <= request.page_size <= LARGEST_PAGE:
        raise InvalidInput(f"must be 0 to {LARGEST_PAGE:,}", field="page_size")
    return request.page_size or PAGE_SIZE


def page_token(last: str) -> str:
    """The token of the page after the document `last`."""
    return base64.urlsafe_b64encode(last.encode()).decode()


def page_start(request: pb.ListDocumentsRequest) -> str:
    """The id that the page comes after; empty for the first page. Raises InvalidInput."""
    try:
        return base64.b64decode(request.page_token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("not a token of ours", field="page_token") from error


def _given(sent: pb.DocumentMetadata) -> Given:
    return Given(
        title=_text(sent, "title"),
        version=_text(sent, "version"),
        area=_text(sent, "area"),
        document_type=_text(sent, "document_type"),
        uri=_text(sent, "uri"),
        state=_state(sent),
        access=_access(sent),
        groups=_groups(sent),
    )


def _text(sent: pb.DocumentMetadata, name: str) -> str | None:
    if not sent.HasField(name):  # type: ignore[arg-type] # each name is an optional field's
        return None
    with _refusing(name):
        return metadata.text(name, getattr(sent, name))


def _state(sent: pb.DocumentMetadata) -> State | None:
    if not sent.HasField("publication_state"):
        return None
    with _refusing("publication_state"):
        return _known(sent.publication_state, _STATES)


def _access(sent: pb.DocumentMetadata) -> AccessLevel | None:
    if not sent.HasField("access_level"):
        return None
    with _refusing("access_level"):
        return _known(sent.access_level, _LEVELS)


def _groups(sent: pb.DocumentMetadata) -> tuple[str, ...] | None:
    with _refusing("groups"):
        return metadata.groups(list(sent.groups)) or None


def _known(number: N, values: Mapping[N, T]) -> T:
    if number not in values:
        raise NotAllowed(f"{number} is not allowed")
    return values[number]


@contextmanager
def _refusing(field: str) -> Iterator[None]:
    try:
        yield
    except NotAllowed as error:
        raise InvalidInput(f"{field}: {error}", field=f"header.metadata.{field}") from error


def _metadata(known: Metadata) -> pb.DocumentMetadata:
    return pb.DocumentMetadata(
        title=known.title,
        version=known.version,
        area=known.area,
        document_type=known.document_type,
        publication_state=_STATE_NUMBERS[known.state],
        access_level=_LEVEL_NUMBERS[known.access],
        groups=known.groups,
        uri=known.uri,
    )


def _preview_chunk(passage: StoredPassage, chunk: Chunk) -> pb.PreviewChunk:
    return pb.PreviewChunk(
        passage=_passage(passage), embedding_input=chunk.embedding_input, tokens=chunk.tokens
    )


def _passage(passage: StoredPassage) -> evidence.Passage:
    return evidence.Passage(
        point_id=point_id(passage, str(passage.chunk)),
        document_id=passage.document_id,
        revision=passage.revision,
        chunking_version=passage.chunking_version,
        chunk=passage.chunk,
        title=passage.title,
        version=passage.version,
        section_id=passage.section_id,
        heading_path=passage.heading_path,
        blocks=[_block(block) for block in passage.blocks],
        access_level=_LEVEL_NUMBERS[passage.access],
        groups=passage.groups,
        document_type=passage.document_type,
        area=passage.area,
        publication_state=_STATE_NUMBERS[passage.state],
        uri=passage.uri,
        suspected_injection=suspected_injection(passage.text),
    )


def _block(block: StoredBlock) -> evidence.Block:
    return evidence.Block(
        ordinal=block.ordinal,
        piece=block.piece,
        kind=_KINDS[block.kind],
        start=block.start,
        end=block.end,
        text=block.text,
        context=block.context,
    )
