"""A block that is too large for a passage, divided where it hurts least."""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import regex  # type: ignore[import-untyped] # published without types

from corpus.points import Kind
from services.ingest.document import Block
from services.ingest.fit import most
from services.ingest.stop import NEVER, Stop

Fits = Callable[[str], bool]
# From a text and a range to positions where a part may end, inside the range, rising.
Cuts = Callable[[str, int, int], Iterator[int]]

_SENTENCE = re.compile(
    r"[.!?…]+[\"'”’»)\]*_]*(?=\s)\s*"  # noqa: RUF001 - quotation marks are meant
    r"|[。！？｡．؟۔।]+[”’」』）]*\s*"  # noqa: RUF001 - other scripts' sentence ends are meant
    r"|\n[^\S\n]*\n\s*"
)
_LINE = re.compile(r"\n")
_WORD = re.compile(r"\s+")
_GRAPHEME = regex.compile(r"\X")
# How exactly the inside of a word is divided, and how many of the levels are inside words.
NEAR = 16
# So many positions are found before the next look whether anybody still waits for them: a word of a
# million characters takes more than a second.
LOOK_EVERY = 4_096
_INSIDE_WORDS = 2


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of the document, and what has to be read before it."""

    start: int
    end: int
    context: str = ""


def pieces(
    text: str,
    block: Block,
    fits: Fits,
    sizes: dict[int, int] | None = None,
    stop: Stop = NEVER,
) -> list[Piece]:
    """The block as one piece, or in pieces that each fit; only blank text falls between them.

    Prose is divided at sentence ends, a list at its items, code at lines, a table at rows, with its
    header as every later piece's context; what is still too large at words, then at what a reader
    sees as one character. `sizes` carries what was found inside words to a document's next block.
    Raises Stopped.
    """
    inside = {} if sizes is None else sizes
    if fits(text[block.start : block.end]):
        return [Piece(block.start, block.end)]
    if block.kind is Kind.TABLE:
        return _rows(text, block, fits, inside, stop)
    division = _Division(text, fits, inside, stop)
    parts = division.parts(block.start, block.end, _levels(block))
    return [Piece(start, end) for start, end in parts]


def _levels(block: Block) -> Sequence[Cuts]:
    words = (_after(_WORD), _graphemes, _code_points)
    match block.kind:
        case Kind.LIST:
            return (partial(_marked, block.marks), _after(_LINE), _after(_SENTENCE), *words)
        case Kind.PARAGRAPH:
            return (_after(_SENTENCE), *words)
        case _:
            return (_after(_LINE), *words)


def _rows(text: str, block: Block, fits: Fits, sizes: dict[int, int], stop: Stop) -> list[Piece]:
    header = text[block.start : block.marks[0]].removesuffix("\n")
    levels = _levels(block)
    if not fits(f"{header}\n{header}"):
        # The header leaves too little room to be repeated.
        parts = _Division(text, fits, sizes, stop).parts(block.start, block.end, levels)
        return [Piece(*span) for span in parts]
    under_header = _Division(text, lambda rows: fits(f"{header}\n{rows}"), sizes, stop)
    spans = under_header.parts(block.marks[0], block.end, levels)
    first, *others = spans
    return [Piece(block.start, first[1]), *(Piece(*span, context=header) for span in others)]


class _Division:
    """Divides one text. Parts are about equally long, so that each begins the search for the next.

    Between words parts are as long as fits; inside a word they may be shorter by one in NEAR, for
    an exact search would measure the word many times.
    """

    def __init__(self, text: str, fits: Fits, inside: dict[int, int], stop: Stop) -> None:
        self._text = text
        self._fits = fits
        self._sizes: dict[int, int] = {}
        self._inside = inside
        self._stop = stop

    def parts(self, start: int, end: int, levels: Sequence[Cuts]) -> Iterator[tuple[int, int]]:
        """Ranges without blank edges that cover all but blank text."""
        cut, *finer = levels
        # A word of a whole document has millions.
        bounds = array("I", chain((start,), self._watched(cut(self._text, start, end)), (end,)))
        first = 0
        while first < len(bounds) - 1:
            last = self._end(bounds, first, len(finer))
            if last == first and finer:
                last = first + 1
                yield from self.parts(bounds[first], bounds[last], finer)
            else:
                # A single code point is as small as it gets.
                last = max(last, first + 1)
                begin, stop = _trimmed(self._text, bounds[first], bounds[last])
                if begin < stop:
                    yield begin, stop
            first = last

    def _watched(self, cuts: Iterator[int]) -> Iterator[int]:
        while some := tuple(islice(cuts, LOOK_EVERY)):
            self._stop.check()
            yield from some

    def _end(self, bounds: Sequence[int], first: int, finer: int) -> int:
        inside = finer < _INSIDE_WORDS
        sizes = self._inside if inside else self._sizes
        size = sizes.get(finer, 0)
        near = max(1, size // NEAR) if inside else 1
        top = len(bounds) - 1
        last = most(first, top, partial(self._part_fits, bounds, first), first + size, near)
        if last < top:
            # What is left of a text says nothing about the parts of the next.
            sizes[finer] = last - first
        return last

    def _part_fits(self, bounds: Sequence[int], first: int, last: int) -> bool:
        start, end = _trimmed(self._text, bounds[first], bounds[last])
        return start == end or self._fits(self._text[start:end])


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without blank edges; a line that begins it keeps its indentation."""
    part = text[start:end].rstrip()
    begin = len(part) - len(part.lstrip())
    line = part.rfind("\n", 0, begin) + 1
    # Indentation means something in code and lists, if it begins a line.
    begins_line = line > 0 or start == 0 or text[start - 1] == "\n"
    return start + (line if begins_line and part else begin), start + len(part)


def _marked(marks: Sequence[int], _text: str, start: int, end: int) -> Iterator[int]:
    return (mark for mark in marks if start < mark < end)


def _after(pattern: re.Pattern[str]) -> Cuts:
    def cuts(text: str, start: int, end: int) -> Iterator[int]:
        ends = (found.end() for found in pattern.finditer(text, start, end))
        return (
            position for position in ends if position < end and _parts_graphemes(text, position)
        )

    return cuts


def _parts_graphemes(text: str, position: int) -> bool:
    # A combining mark can stand on a blank or a full stop.
    return bool(_GRAPHEME.match(text, position - 1).end() == position)


def _graphemes(text: str, start: int, end: int) -> Iterator[int]:
    ends = (found.end() for found in _GRAPHEME.finditer(text, start, end))
    return (position for position in ends if position < end)


def _code_points(_text: str, start: int, end: int) -> Iterator[int]:
    return iter(range(start + 1, end))
