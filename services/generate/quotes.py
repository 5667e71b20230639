"""What of a source can be quoted by itself: sentences, items, table rows, lines of code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.generate.evidence import Block, Kind, Source
from services.generate.sentences import Span, lines, sentences

_RULE = re.compile(r"[|:\s+-]+")
# What points elsewhere says nothing itself.
_LINK = re.compile(r"!?\[[^\]]*\]\([^)]*\)|https?://\S+")
_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Quotable:
    """One piece of a source's text, verbatim.

    `context` is what else says what it is about: the sentence before it, a table's header.
    """

    source: Source
    kind: Kind
    span: Span
    context: str

    @property
    def text(self) -> str:
        return self.span.of(self.source.text)

    @property
    def is_row(self) -> bool:
        return self.kind is Kind.TABLE

    @property
    def is_prose(self) -> bool:
        return self.kind is Kind.PARAGRAPH


def quotables(source: Source) -> list[Quotable]:
    """All pieces of a source in order; text that no block accounts for counts as prose."""
    found: list[Quotable] = []
    for kind, span in _stretches(source):
        found.extend(_pieces(source, kind, span))
    return found


def _stretches(source: Source) -> Iterator[tuple[Kind, Span]]:
    at = 0
    for block in source.blocks:
        start = source.text.find(block.text, at) if block.text else -1
        if start < 0:
            continue
        yield from _between(source, block, at, start)
        at = start + len(block.text)
        yield block.kind, Span(start, at)
    if source.text[at:].strip():
        yield Kind.PARAGRAPH, Span(at, len(source.text))


def _between(source: Source, block: Block, start: int, end: int) -> Iterator[tuple[Kind, Span]]:
    """Text before a block, unless it only repeats the block's context."""
    text = source.text[start:end].strip()
    if text and text != block.context.strip():
        yield Kind.PARAGRAPH, Span(start, end)


def _pieces(source: Source, kind: Kind, stretch: Span) -> Iterator[Quotable]:
    text = stretch.of(source.text)
    if kind is Kind.TABLE:
        yield from _rows(source, stretch)
        return
    if kind is Kind.CODE:
        spans = lines(text)
    else:
        spans = [span for span in sentences(text) if _WORD.search(_LINK.sub("", span.of(text)))]
    context = ""
    for span in spans:
        yield Quotable(source, kind, span.moved(stretch.start), context)
        context = span.of(text)


def _rows(source: Source, stretch: Span) -> Iterator[Quotable]:
    text = stretch.of(source.text)
    spans = lines(text)
    header = _header(source, text)
    for span in spans:
        row = span.of(text)
        if row != header and not _RULE.fullmatch(row):
            yield Quotable(source, Kind.TABLE, span.moved(stretch.start), header)


def _header(source: Source, text: str) -> str:
    """The table's header, which stands in the block or, for a later piece, in its context."""
    for block in source.blocks:
        if block.kind is Kind.TABLE and block.text == text and block.context:
            return block.context.splitlines()[0].strip()
    shown = [span.of(text) for span in lines(text)]
    has_header = len(shown) > 1 and bool(_RULE.fullmatch(shown[1]))
    return shown[0] if has_header else ""
