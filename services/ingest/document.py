"""What a document is once it was read. Positions count code points of its normalised text."""

from dataclasses import dataclass
from enum import StrEnum

from chassis.identity import AccessLevel
from corpus.points import Kind, State


class Format(StrEnum):
    """How the bytes are to be read."""

    MARKDOWN = "markdown"
    TEXT = "text"
    HTML = "html"
    PDF = "pdf"
    DOCX = "docx"


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of a document besides its text, every default filled in."""

    title: str
    version: str
    area: str
    document_type: str
    state: State
    access: AccessLevel
    groups: tuple[str, ...]
    uri: str


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level block of a section.

    `marks` are positions inside the block where it is best divided: the starts of a list's items;
    for a table the one end of its header.
    """

    kind: Kind
    start: int
    end: int
    marks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading. The path goes from the outermost heading to its own."""

    id: str
    path: tuple[str, ...]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One document of one source. `content_hash` is of the bytes, hexadecimal.

    `rules` names what made the text of the bytes, where they are no text or do not stay as they
    are.
    """

    id: str
    source: str
    content_hash: str
    text: str
    metadata: Metadata
    sections: tuple[Section, ...]
    rules: str = ""
