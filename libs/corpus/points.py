"""A passage as a point of the index: its id and its payload, both ways.

    point id = uuid_of("passage", tenant, document id, chunking version, revision, chunk id)

The chunk id is the chunk's number in its document, in decimal digits. Where a retired row still
holds that id, because a document went back to an earlier revision, it is followed by "@" and the
epoch that publishes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from chassis.identity import AccessLevel
from corpus.fields import Fields
from corpus.identity import uuid_of

T = TypeVar("T")

# Stands in `groups` where the access level alone decides. No group may be called so.
EVERYBODY: Final = "*"


class Key(StrEnum):
    """Names of payload fields."""

    TENANT = "tenant_id"
    DOCUMENT = "document_id"
    SOURCE = "source"
    REVISION = "revision"
    CONTENT_HASH = "content_hash"
    CHUNKING = "chunking_version"
    CHUNK = "chunk"
    CHUNKS = "chunks"
    INPUT_HASH = "input_hash"
    TITLE = "title"
    VERSION = "version"
    AREA = "area"
    DOCUMENT_TYPE = "document_type"
    STATE = "publication_state"
    ACCESS = "access_level"
    GROUPS = "groups"
    URI = "uri"
    SECTION = "section_id"
    HEADING = "heading_path"
    BLOCKS = "blocks"
    VALID_FROM = "valid_from"
    VALID_TO = "valid_to"
    RETIRED_AT = "retired_at"


class State(StrEnum):
    """Whether a document is meant to be found."""

    DRAFT = "draft"
    PUBLISHED = "published"


class Kind(StrEnum):
    """What kind of text a block is."""

    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One block, or one piece of a block. Positions count code points of the normalised document.

    `text` is exactly the document's characters from start to end; `context` is what has to be read
    before it, such as a table's header.
    """

    ordinal: int
    piece: int
    kind: Kind
    start: int
    end: int
    text: str
    context: str = ""

    @property
    def readable(self) -> str:
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """One chunk as the index holds it. Live at epochs from valid_from up to before valid_to.

    `input_hash` is that of the profile and the exact text that was embedded: of two passages that
    share it, both have one vector.
    """

    tenant: str
    document_id: str
    source: str
    revision: str
    content_hash: str
    chunking_version: str
    chunk: int
    chunks: int
    input_hash: str
    title: str
    version: str
    area: str
    document_type: str
    state: State
    access: AccessLevel
    groups: tuple[str, ...]
    uri: str
    section_id: str
    heading_path: tuple[str, ...]
    blocks: tuple[StoredBlock, ...]
    valid_from: int
    valid_to: int

    @property
    def text(self) -> str:
        """The blocks as one text, in source order."""
        return "\n\n".join(block.readable for block in self.blocks)


def point_id(passage: StoredPassage, chunk_id: str) -> str:
    """UUID of the passage's point; see the top of this file."""
    return uuid_of(
        "passage",
        passage.tenant,
        passage.document_id,
        passage.chunking_version,
        passage.revision,
        chunk_id,
    )


def to_payload(passage: StoredPassage) -> dict[str, Any]:
    """The payload of a passage that was not retired yet."""
    return {
        Key.TENANT.value: passage.tenant,
        Key.DOCUMENT.value: passage.document_id,
        Key.SOURCE.value: passage.source,
        Key.REVISION.value: passage.revision,
        Key.CONTENT_HASH.value: passage.content_hash,
        Key.CHUNKING.value: passage.chunking_version,
        Key.CHUNK.value: passage.chunk,
        Key.CHUNKS.value: passage.chunks,
        Key.INPUT_HASH.value: passage.input_hash,
        Key.TITLE.value: passage.title,
        Key.VERSION.value: passage.version,
        Key.AREA.value: passage.area,
        Key.DOCUMENT_TYPE.value: passage.document_type,
        Key.STATE.value: passage.state.value,
        Key.ACCESS.value: passage.access.label,
        Key.GROUPS.value: list(passage.groups) or [EVERYBODY],
        Key.URI.value: passage.uri,
        Key.SECTION.value: passage.section_id,
        Key.HEADING.value: list(passage.heading_path),
        Key.BLOCKS.value: [_block_payload(block) for block in passage.blocks],
        Key.VALID_FROM.value: passage.valid_from,
        Key.VALID_TO.value: passage.valid_to,
        Key.RETIRED_AT.value: 0,
    }


def from_fields(fields: Fields) -> StoredPassage:
    """The passage in a payload.

    Raises DataViolation with the point id for any field that is missing or of the wrong type.
    """
    return StoredPassage(
        tenant=_name(fields, Key.TENANT),
        document_id=_name(fields, Key.DOCUMENT),
        source=_name(fields, Key.SOURCE),
        revision=_name(fields, Key.REVISION),
        content_hash=_name(fields, Key.CONTENT_HASH),
        chunking_version=_name(fields, Key.CHUNKING),
        chunk=fields.number(Key.CHUNK),
        chunks=fields.number(Key.CHUNKS),
        input_hash=_name(fields, Key.INPUT_HASH),
        title=fields.text(Key.TITLE),
        version=fields.text(Key.VERSION),
        area=fields.text(Key.AREA),
        document_type=fields.text(Key.DOCUMENT_TYPE),
        state=_one_of(_STATES, fields, Key.STATE),
        access=_one_of(_LEVELS, fields, Key.ACCESS),
        groups=_groups(fields),
        uri=fields.text(Key.URI),
        section_id=fields.text(Key.SECTION),
        heading_path=fields.texts(Key.HEADING),
        blocks=_blocks(fields),
        valid_from=fields.number(Key.VALID_FROM),
        valid_to=fields.number(Key.VALID_TO),
    )


def _block_payload(block: StoredBlock) -> dict[str, Any]:
    return {
        "ordinal": block.ordinal,
        "piece": block.piece,
        "kind": block.kind.value,
        "start": block.start,
        "end": block.end,
        "text": block.text,
        "context": block.context,
    }


# By what is stored, letter for letter.
_LEVELS: Mapping[str, AccessLevel] = {level.label: level for level in AccessLevel}
_STATES: Mapping[str, State] = {state.value: state for state in State}
_KINDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind}


def _name(fields: Fields, key: str) -> str:
    found = fields.text(key)
    if not found:
        raise fields.wrong(key)
    return found


def _one_of(known: Mapping[str, T], fields: Fields, key: str) -> T:
    found = known.get(fields.text(key))
    if found is None:
        raise fields.wrong(key)
    return found


def _groups(fields: Fields) -> tuple[str, ...]:
    found = fields.texts(Key.GROUPS)
    if found == (EVERYBODY,):
        return ()
    # An empty list must never come to mean everybody.
    if not found or EVERYBODY in found:
        raise fields.wrong(Key.GROUPS)
    return found


def _blocks(fields: Fields) -> tuple[StoredBlock, ...]:
    found = fields.parts(Key.BLOCKS)
    if not found:
        raise fields.wrong(Key.BLOCKS)
    return tuple([_block(part) for part in found])


def _block(fields: Fields) -> StoredBlock:
    return StoredBlock(
        ordinal=fields.number("ordinal"),
        piece=fields.number("piece"),
        kind=_one_of(_KINDS, fields, "kind"),
        start=fields.number("start"),
        end=fields.number("end"),
        text=fields.text("text"),
        context=fields.text("context"),
    )
