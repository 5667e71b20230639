"""From bytes to what would be stored: read, divided, identified. Touches nothing outside."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from corpus.epochs import LIVE
from corpus.identity import hash_of
from corpus.points import StoredPassage
from services.ingest import front_matter, markdown, plain, text
from services.ingest.chunk import Chunk, Chunking
from services.ingest.document import Document, Format, Metadata, Section
from services.ingest.metadata import Given
from services.ingest.stop import NEVER, Stop

SUPPORTED = "Markdown (.md, .markdown) and plain text (.txt)"
ID_LENGTH = 512
SOURCE_LENGTH = 128

_PARSERS: dict[Format, Callable[[str, int, Stop], tuple[Section, ...]]] = {
    Format.MARKDOWN: markdown.sections,
    Format.TEXT: plain.sections,
}
_EXTENSIONS = {
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".txt": Format.TEXT,
    ".text": Format.TEXT,
}


@dataclass(frozen=True, slots=True)
class Header:
    """What the caller says of the bytes. No format means by the id's extension."""

    document_id: str
    source: str
    format: Format | None = None
    given: Given = field(default_factory=Given)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document ready to be embedded. `passages` and `chunks` go together."""

    document: Document
    revision: str
    chunks: tuple[Chunk, ...]
    passages: tuple[StoredPassage, ...]


@dataclass(frozen=True, slots=True)
class Preparation:
    """How documents are prepared in this process."""

    chunking: Chunking
    default_access: AccessLevel

    def prepare(self, tenant: str, header: Header, data: bytes, stop: Stop = NEVER) -> Prepared:
        """Raises InvalidInput that names the document, and the line where there is one; Stopped."""
        document = read(header, data, self.default_access, stop)
        chunks = tuple(self.chunking.chunks(document, stop))
        revision = self._revision(document)
        passages = tuple(
            self._passage(tenant, document, revision, number, chunks)
            for number in range(len(chunks))
        )
        return Prepared(document, revision, chunks, passages)

    def _revision(self, document: Document) -> str:
        known = document.metadata
        return hash_of(
            document.content_hash,
            document.source,
            self.chunking.version,
            self.chunking.profile.id,
            known.title,
            known.version,
            known.area,
            known.document_type,
            known.state.value,
            known.access.label,
            known.uri,
            *known.groups,
        )

    def _passage(
        self,
        tenant: str,
        document: Document,
        revision: str,
        number: int,
        chunks: tuple[Chunk, ...],
    ) -> StoredPassage:
        known, chunk = document.metadata, chunks[number]
        return StoredPassage(
            tenant=tenant,
            document_id=document.id,
            source=document.source,
            revision=revision,
            content_hash=document.content_hash,
            chunking_version=self.chunking.version,
            chunk=number,
            chunks=len(chunks),
            input_hash=hash_of(self.chunking.profile.id, chunk.embedding_input),
            title=known.title,
            version=known.version,
            area=known.area,
            document_type=known.document_type,
            state=known.state,
            access=known.access,
            groups=known.groups,
            uri=known.uri,
            section_id=chunk.section.id,
            heading_path=chunk.section.path,
            blocks=chunk.blocks,
            valid_from=0,
            valid_to=LIVE,
        )


def check(header: Header) -> Format:
    """The format to read by. Raises InvalidInput naming the field of the header."""
    check_id(header.document_id, "header.document_id")
    check_source(header.source, "header.source")
    extension = PurePosixPath(header.document_id).suffix.lower()
    found = header.format or _EXTENSIONS.get(extension)
    if found is None or found not in _PARSERS:
        what = found.value if found else f"a document with the extension {extension!r}"
        raise InvalidInput(
            f"{header.document_id}: {what} is not read; supported: {SUPPORTED}",
            field="header.format",
            reason="UNSUPPORTED_FORMAT",
        )
    return found


def read(header: Header, data: bytes, default_access: AccessLevel, stop: Stop = NEVER) -> Document:
    """The document in the bytes. Raises InvalidInput; EMPTY where nothing is left to index."""
    parse = _PARSERS[check(header)]
    decoded = text.decode(data, header.document_id)
    found = front_matter.read(decoded, header.document_id)
    sections = parse(decoded, found.body, stop)
    if not sections:
        raise InvalidInput(f"{header.document_id}: there is no text", field="data", reason="EMPTY")
    return Document(
        id=header.document_id,
        source=header.source,
        content_hash=hashlib.sha256(data).hexdigest(),
        text=decoded,
        metadata=_metadata(header, found.given, sections, default_access),
        sections=sections,
    )


def _metadata(
    header: Header, given: Given, sections: tuple[Section, ...], access: AccessLevel
) -> Metadata:
    headings = (heading for section in sections for heading in section.path)
    title = next(headings, header.document_id)
    return header.given.resolved(under=given, title=title, access=access)


def check_id(value: str, field: str) -> None:
    """Raises InvalidInput unless the value can name a document."""
    _check_name(field, value, ID_LENGTH)


def check_source(value: str, field: str) -> None:
    """Raises InvalidInput unless the value can name a source."""
    _check_name(field, value, SOURCE_LENGTH)


def _check_name(field: str, value: str, length: int) -> None:
    if not 0 < len(value) <= length or not value.isprintable() or value != value.strip():
        raise InvalidInput(
            f"{field} must have 1 to {length} characters that can be shown, no blanks around them",
            field=field,
        )
