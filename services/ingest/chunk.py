"""Whole blocks grouped into passages that the embedding model can take."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from chassis.errors import InvalidInput
from corpus.points import StoredBlock
from corpus.profile import EmbeddingProfile
from services.ingest.divide import pieces
from services.ingest.document import Document, Section
from services.ingest.fit import most
from services.ingest.stop import NEVER, Stop

# Raised by every change to the rules that shape passages.
RULES = "blocks2"
# Longest passage: blanks cost no tokens, but readers, tokenizers and models have their limits.
CHARACTERS = 16_384
# Passages of one document: of the longest one that is read, and not of one that is all headings.
PASSAGES = 30_000
# Texts of a section whose length is remembered, since a piece is soon a passage.
REMEMBERED = 2_048
# Pieces this many times the budget together are not measured together: a passage they fit would
# be a wonder, and of an unbroken word every pair would be measured in vain.
HOPELESS = 1.25


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
    heading; up to `overlap` whole blocks are repeated in the next passage. A block that no passage
    can hold is divided, or `rejecting` refuses its document.
    """

    profile: EmbeddingProfile
    count: Callable[[str], int]
    budget: int
    overlap: int
    rejecting: bool = False

    @property
    def version(self) -> str:
        """Names every rule that shapes the text of passages."""
        return f"{RULES}-{self.budget}-{self.overlap}-{self.profile.tokenizer}"

    def chunks(self, document: Document, stop: Stop = NEVER) -> list[Chunk]:
        """The document's passages in order; every block is in at least one.

        Raises InvalidInput (BLOCK_TOO_LARGE) where a single character exceeds the budget, or a
        block that is not to be divided; (DOCUMENT_TOO_LARGE) for more than PASSAGES; and Stopped.
        """
        sizes: dict[int, int] = {}
        sections = (self._section(document, each, sizes, stop) for each in document.sections)
        found = list(islice(chain.from_iterable(sections), PASSAGES + 1))
        if len(found) > PASSAGES:
            raise InvalidInput(
                f"{document.id}: more than {PASSAGES:,} passages; divide it",
                field="data",
                reason="DOCUMENT_TOO_LARGE",
            )
        return found

    def _section(
        self, document: Document, section: Section, sizes: dict[int, int], stop: Stop
    ) -> Iterator[Chunk]:
        stop.check()
        head = self._head(document.metadata.title, section.path)
        scale = _Scale(self, head, stop)
        units = list(_units(document.text, section, scale.fits, sizes, stop))
        if self.rejecting:
            self._reject_divided(document, units)
        for window in self._windows(units, scale):
            text = _readable(window)
            tokens = scale.tokens(text)
            if tokens > self.budget:
                complaint = f"{tokens} tokens in one character where {self.budget} are allowed"
                raise _too_large(document, window[0].block, complaint)
            blocks = tuple(unit.block for unit in window)
            yield Chunk(section, blocks, scale.whole_input(text), tokens)

    def _reject_divided(self, document: Document, units: Sequence[_Unit]) -> None:
        divided = next((unit.block for unit in units if not unit.whole), None)
        if divided:
            complaint = (
                f"this {divided.kind.value} does not fit into {self.budget} tokens; divide it"
            )
            raise _too_large(document, divided, complaint)

    def _head(self, title: str, path: Sequence[str]) -> tuple[str, str]:
        """Title and heading to repeat: the most that leaves half of the budget to the text."""
        below = path[1:] if path and path[0] == title else path
        own = below[-1] if below else ""
        full = " / ".join(below)
        for head in ((title, full), (title, own), (title, ""), ("", own)):
            if self.count(self.profile.document_input(*head, "")) <= self.budget // 2:
                return head
        return "", ""

    def _windows(self, units: Sequence[_Unit], scale: "_Scale") -> Iterator[Sequence[_Unit]]:
        first = last = 0
        while last < len(units):
            first = self._repeated_from(units, first, last, scale)
            last = most(last + 1, len(units), partial(_fits, units, scale, first))
            yield units[first:last]

    def _repeated_from(self, units: Sequence[_Unit], first: int, last: int, scale: "_Scale") -> int:
        """Where the window after units[first:last] begins; the unit at `last` must fit in it."""
        begin = last
        for candidate in range(last - 1, max(first, last - 1 - self.overlap), -1):
            if not units[candidate].whole or not _fits(units, scale, candidate, last + 1):
                break
            begin = candidate
        return begin


class _Scale:
    """Measures texts of one section as they would be embedded, with title and heading."""

    def __init__(self, chunking: Chunking, head: tuple[str, str], stop: Stop) -> None:
        self._chunking = chunking
        self._head = head
        self._stop = stop
        self._known: dict[str, int] = {}
        self._around = self.tokens("")

    def whole_input(self, text: str) -> str:
        return self._chunking.profile.document_input(*self._head, text)

    def tokens(self, text: str) -> int:
        if text not in self._known:
            self._stop.check()
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[text] = self._chunking.count(self.whole_input(text))
        return self._known[text]

    def fits(self, text: str) -> bool:
        return len(text) <= CHARACTERS and self.tokens(text) <= self._chunking.budget

    def hopeless(self, pieces: Sequence[str]) -> bool:
        """Whether pieces of blocks are too large together by far."""
        most_tokens = HOPELESS * self._chunking.budget
        total = self._around
        for piece in pieces:
            total += self.tokens(piece) - self._around
            if total > most_tokens:
                return True
        return False


def _units(
    text: str, section: Section, fits: Callable[[str], bool], sizes: dict[int, int], stop: Stop
) -> Iterator[_Unit]:
    for ordinal, block in enumerate(section.blocks):
        found = pieces(text, block, fits, sizes, stop)
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


def _fits(units: Sequence[_Unit], scale: _Scale, first: int, end: int) -> bool:
    window = units[first:end]
    divided = [unit.block.readable for unit in window if not unit.whole]
    return not scale.hopeless(divided) and scale.fits(_readable(window))


def _readable(units: Sequence[_Unit]) -> str:
    return "\n\n".join(unit.block.readable for unit in units)


def _too_large(document: Document, block: StoredBlock, complaint: str) -> InvalidInput:
    line = document.text.count("\n", 0, block.start) + 1
    return InvalidInput(
        f"{document.id}, line {line}: {complaint}",
        field="data",
        reason="BLOCK_TOO_LARGE",
        metadata={"line": str(line)},
    )
