"""What may become evidence: passages, where their blocks stand, and the order they are tried in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Position(NamedTuple):
    """Where a block stands. Compares in source order within a section."""

    document: str
    revision: str
    section: str
    ordinal: int
    piece: int

    def moved(self, ordinal: int, piece: int) -> "Position":
        return self._replace(ordinal=ordinal, piece=piece)


@dataclass(frozen=True, slots=True)
class Block:
    """One block as the model would see it; `start` and `end` are the document's characters."""

    at: Position
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """One passage. `index` is its place in the request; `blocks` are in source order.

    `marked` says that an earlier stage took it for instructions to a model.
    """

    index: int
    point: str
    document: str
    revision: str
    chunking: str
    chunk: int
    title: str
    version: str
    headings: tuple[str, ...]
    blocks: tuple[Block, ...]
    score: float
    marked: bool

    @property
    def readable(self) -> str:
        """Everything of it that a model would see."""
        return "\n".join([self.title, *self.headings, *(block.text for block in self.blocks)])


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best score first; ties by document, chunking version and chunk, independent of the input."""
    return sorted(
        candidates,
        key=lambda c: (-c.score, c.document, c.chunking, c.chunk, c.revision, c.point, c.index),
    )
