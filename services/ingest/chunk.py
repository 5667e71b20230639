"""Whole blocks grouped into passages that the embedding model can take."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from chassis.errors import InvalidInput
from corpus.points import StoredBlock
from corpus.profile import EmbeddingProfile
from services.ingest.divide import pieces
from services.ingest.document import Document, Section
from services.ingest.fit import most

# Raised by every change to the rules that shape passages.
RULES = "blocks1"
# Longest passage: blanks cost no tokens, but readers, tokenizers and models have their limits.
CHARACTERS = 16_384


@dataclass(frozen=True, slots=True)
class Chunk:
    """One passage to be. `embedding_input` is what is embedded, `tokens` its exact length."""

    section: Section
    blocks: tuple[StoredBlock, ...]
    embedding_input: str
    tokens: int


@dataclass(frozen=True, slots=True)
class _Unit:
    """A block or a piece of one. Only whole blocks are repeated in the next passage."""

    block: StoredBlock
    whole: bool


@dataclass(frozen=True, slots=True)
class Chunking:
    """The rules.

    `budget` is in the profile's tokens for a whole embedding input, with template, title and
    heading; up to `overlap` whole blocks are repeated in the next passage.
    """

    profile: EmbeddingProfile
    count: Callable[[str], int]
    budget: int
    overlap: int

    @property
    def version(self) -> str:
        """Names every rule that shapes the text of passages."""
        return f"{RULES}-{self.budget}-{self.overlap}-{self.profile.tokenizer}"

    def chunks(self, document: Document) -> list[Chunk]:
        """The document's passages in order; every block is in at least one.

        Raises InvalidInput (BLOCK_TOO_LARGE) where a single character exceeds the budget.
        """
        return [
            chunk for section in document.sections for chunk in self._section(document, section)
        ]

    def _section(self, document: Document, section: Section) -> Iterator[Chunk]:
        title, heading = self._head(document.metadata.title, section.path)

        def whole_input(text: str) -> str:
            return self.profile.document_input(title, heading, text)

        def fits(text: str) -> bool:
            return len(text) <= CHARACTERS and self.count(whole_input(text)) <= self.budget

        units = list(_units(document.text, section, fits))
        for window in self._windows(units, fits):
            given = whole_input(_readable(window))
            tokens = self.count(given)
            if tokens > self.budget:
                raise _too_large(document, window[0].block, tokens, self.budget)
            yield Chunk(section, tuple(unit.block for unit in window), given, tokens)

    def _head(self, title: str, path: Sequence[str]) -> tuple[str, str]:
        """Title and heading to repeat: the most that leaves half of the budget to the text."""
        below = path[1:] if path and path[0] == title else path
        own = below[-1] if below else ""
        full = " / ".join(below)
        for head in ((title, full), (title, own), (title, ""), ("", own)):
            if self.count(self.profile.document_input(*head, "")) <= self.budget // 2:
                return head
        return "", ""

    def _windows(
        self, units: Sequence[_Unit], fits: Callable[[str], bool]
    ) -> Iterator[Sequence[_Unit]]:
        first = last = 0
        while last < len(units):
            first = self._repeated_from(units, first, last, fits)
            last = most(last + 1, len(units), partial(_fits, units, fits, first))
            yield units[first:last]

    def _repeated_from(
        self, units: Sequence[_Unit], first: int, last: int, fits: Callable[[str], bool]
    ) -> int:
        """Where the window after units[first:last] begins; the unit at `last` must fit in it."""
        begin = last
        for candidate in range(last - 1, max(first, last - 1 - self.overlap), -1):
            if not units[candidate].whole or not _fits(units, fits, candidate, last + 1):
                break
            begin = candidate
        return begin


def _units(text: str, section: Section, fits: Callable[[str], bool]) -> Iterator[_Unit]:
    for ordinal, block in enumerate(section.blocks):
        found = pieces(text, block, fits)
        for number, piece in enumerate(found):
            stored = StoredBlock(
                ordinal=ordinal,
                piece=number,
                kind=block.kind,
                start=piece.start,
                end=piece.end,
                text=text[piece.start : piece.end],
                context=piece.context,
            )
            yield _Unit(stored, whole=len(found) == 1)


def _fits(units: Sequence[_Unit], fits: Callable[[str], bool], first: int, end: int) -> bool:
    return fits(_readable(units[first:end]))


def _readable(units: Sequence[_Unit]) -> str:
    return "\n\n".join(unit.block.readable for unit in units)


def _too_large(document: Document, block: StoredBlock, tokens: int, budget: int) -> InvalidInput:
    line = document.text.count("\n", 0, block.start) + 1
    return InvalidInput(
        f"{document.id}, line {line}: {tokens} tokens in one character where {budget} are allowed",
        field="data",
        reason="BLOCK_TOO_LARGE",
    )
