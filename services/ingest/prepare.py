"""From bytes to what would be stored: read, divided, identified. Touches nothing outside."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from corpus.epochs import LIVE
from corpus.identity import hash_of
from corpus.points import StoredPassage
from services.ingest import convert, front_matter, guard, kind, markdown, mask, plain, text
from services.ingest.chunk import Chunk, Chunking
from services.ingest.document import Document, Format, Metadata, Section
from services.ingest.metadata import LENGTHS, Given, can_be_shown
from services.ingest.stop import NEVER, Stop

SUPPORTED = "Markdown (.md, .markdown), plain text (.txt), HTML (.html, .htm), PDF and DOCX"
ID_LENGTH = 512
SOURCE_LENGTH = 128

_PARSERS: dict[Format, Callable[[str, int, Stop], tuple[Section, ...]]] = {
    Format.MARKDOWN: markdown.sections,
    Format.TEXT: plain.sections,
    # Converted to Markdown first.
    **dict.fromkeys(convert.ADAPTERS, markdown.sections),
}
_EXTENSIONS = {
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".txt": Format.TEXT,
    ".text": Format.TEXT,
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".pdf": Format.PDF,
    ".docx": Format.DOCX,
}


@dataclass(frozen=True, slots=True)
class Header:
    """What the caller says of the bytes. No format means by the id's extension.

    `size` is their number where the caller knows it.
    """

    document_id: str
    source: str
    format: Format | None = None
    given: Given = field(default_factory=Given)
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document ready to be embedded. `passages` and `chunks` go together."""

    document: Document
    revision: str
    chunks: tuple[Chunk, ...]
    passages: tuple[StoredPassage, ...]


@dataclass(frozen=True, slots=True)
class Preparation:
    """How documents are prepared in this process; whether with personal data masked."""

    chunking: Chunking
    default_access: AccessLevel
    masking: bool = False

    def prepare(self, tenant: str, header: Header, data: bytes, stop: Stop = NEVER) -> Prepared:
        """Raises InvalidInput that names the document, and the line where there is one; Stopped."""
        document = read(header, data, self.default_access, stop, masking=self.masking)
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
            document.rules,
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
    if found is None:
        raise InvalidInput(
            f"{header.document_id}: a document with the extension {extension!r} is not read;"
            f" supported: {SUPPORTED}",
            field="header.format",
            reason="UNSUPPORTED_FORMAT",
        )
    return found


def read(
    header: Header,
    data: bytes,
    default_access: AccessLevel,
    stop: Stop = NEVER,
    *,
    masking: bool = False,
) -> Document:
    """The document in the bytes. Raises InvalidInput; EMPTY where nothing is left to index."""
    form, name = check(header), header.document_id
    kind.check(data, name, form)
    source = _converted(form, data, name, stop) if form in convert.ADAPTERS else _text(data, name)
    guard.refuse_credentials(f"{source.text}\n{source.given.title or ''}", name, stop)
    if masking:
        source = source.masked()
    sections = _PARSERS[form](source.text, source.body, stop)
    if not sections:
        raise InvalidInput(f"{name}: there is no text", field="data", reason="EMPTY")
    return Document(
        id=name,
        source=header.source,
        content_hash=hashlib.sha256(data).hexdigest(),
        rules=source.rules,
        text=source.text,
        metadata=_metadata(header, source.given, sections, default_access),
        sections=sections,
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """A document as text. `body` is where it begins below what it says of itself.

    `rules` names what made the text of the bytes, besides decoding.
    """

    text: str
    body: int
    given: Given
    rules: str = ""

    def masked(self) -> "_Source":
        head, body = self.text[: self.body], mask.masked(self.text[self.body :])
        title = self.given.title and mask.masked(self.given.title)
        return _Source(
            head + body, self.body, replace(self.given, title=title), f"{self.rules} {mask.RULES}"
        )


def _text(data: bytes, name: str) -> _Source:
    decoded = text.decode(data, name)
    found = front_matter.read(decoded, name)
    return _Source(decoded, found.body, found.given)


def _converted(form: Format, data: bytes, name: str, stop: Stop) -> _Source:
    page = convert.convert(data, name, form, stop)
    text.check_size(page.text, name)
    front_matter.refuse_unread(page.text, name)
    given = replace(front_matter.said(page.said, name), title=_title(page.title))
    return _Source(page.text, 0, given, convert.RULES)


def _title(found: str) -> str | None:
    """A title that a program wrote, as far as it can be one of ours."""
    shown = " ".join(found.split())
    return shown[: LENGTHS["title"]] if can_be_shown(shown) and shown else None


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
    if not 0 < len(value) <= length or not can_be_shown(value) or value != value.strip():
        raise InvalidInput(
            f"{field} must have 1 to {length} characters that can be shown, no blanks around them",
            field=field,
        )
