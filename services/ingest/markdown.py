"""Markdown to sections and blocks, by a CommonMark parser, with exact positions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from corpus.points import Kind
from services.ingest.document import Block, Section
from services.ingest.sections import SectionIds
from services.ingest.stop import NEVER, Stop

# Longest heading that is repeated with its passages, in characters.
LABEL = 300

# Reference definitions are text that a reader may need; the rule would swallow them.
_PARSER = MarkdownIt("commonmark").enable("table").disable("reference")
_KINDS = {
    "bullet_list_open": Kind.LIST,
    "ordered_list_open": Kind.LIST,
    "table_open": Kind.TABLE,
    "fence": Kind.CODE,
    "code_block": Kind.CODE,
}
_TABLE_HEAD = 2  # lines: header and separator
_ANCHOR = re.compile(r"\s*\{:?\s*#[\w:.-]+\s*\}\s*$")
_MARKS = re.compile(r"[ \t]*#{1,6}[ \t]*")


class _TopLevel(StateBlock):
    """Keeps no tokens below the first level, of which a document can have millions."""

    stop = NEVER

    def push(self, ttype: str, tag: str, nesting: int) -> Token:
        self.stop.check()
        token = super().push(ttype, tag, nesting)  # type: ignore[arg-type] # -1, 0 or 1
        if token.level > 1:
            self.tokens.pop()
        return token


@dataclass(slots=True)
class _Open:
    """A section while its blocks are collected. Level 0 is what stands before any heading."""

    level: int
    path: tuple[str, ...]
    heading: tuple[int, int] | None = None
    repeated: bool = True
    blocks: list[Block] = field(default_factory=list)


def sections(text: str, body: int, stop: Stop = NEVER) -> tuple[Section, ...]:
    """The sections of the text from the position `body` on, in order, none without a block.

    Every character that is not blank and belongs to no heading, fence or thematic break is in
    exactly one block. A heading stands in its section's path, and in a block of its own where
    nothing below it would carry it.
    """
    found = list(_collected(text, body, stop))
    for section, following in pairwise([*found, _Open(0, ())]):
        bare = not section.blocks and following.level <= section.level
        if section.heading and (bare or not section.repeated):
            section.blocks.insert(0, Block(Kind.PARAGRAPH, *section.heading))
    ids = SectionIds()
    return tuple(
        Section(ids.of(section.path), section.path, tuple(section.blocks))
        for section in found
        if section.blocks
    )


def _collected(text: str, body: int, stop: Stop) -> Iterator[_Open]:
    lines = _Lines(text, body)
    outer: list[tuple[int, str]] = []
    current = _Open(0, ())
    tokens = _tokens(text[body:], stop)
    for position, token in enumerate(tokens):
        stop.check()
        if token.level or not token.map:
            continue
        if token.type == "heading_open":
            yield current
            current = _heading(lines, token, tokens[position + 1], outer)
        elif block := _block(lines, token, tokens, position):
            current.blocks.append(block)
    yield current


def _tokens(source: str, stop: Stop) -> list[Token]:
    tokens: list[Token] = []
    state = _TopLevel(source, _PARSER, {}, tokens)
    state.stop = stop
    _PARSER.block.tokenize(state, state.line, state.lineMax)
    return tokens


class _Lines:
    """From line numbers below `body` to positions in the whole text."""

    def __init__(self, text: str, body: int) -> None:
        self.text = text
        ends = [body + end.end() for end in re.finditer("\n", text[body:])]
        self._starts = [body, *ends]

    def span(self, first: int, end: int) -> tuple[int, int]:
        """From the first line's start to before the line `end`, without blank edges.

        The first line's indentation is kept, since that of the others relates to it.
        """
        start, stop = self.start(first), self.start(end)
        stop = start + len(self.text[start:stop].rstrip())
        blank = re.compile(r"(?:[^\S\n]*\n)*").match(self.text, start, stop)
        return (blank.end() if blank else start), stop

    def start(self, line: int) -> int:
        return self._starts[line] if line < len(self._starts) else len(self.text)


def _heading(lines: _Lines, token: Token, inline: Token, outer: list[tuple[int, str]]) -> _Open:
    level = int(token.tag[1])
    while outer and outer[-1][0] >= level:
        outer.pop()
    label = _label(inline.content)
    if label:
        outer.append((level, label[:LABEL]))
    first, end = inline.map or (0, 0)
    start, stop = lines.span(first, end)
    if marks := _MARKS.match(lines.text, start, stop):
        start = marks.end()
    return _Open(
        level,
        path=tuple(name for _, name in outer),
        heading=(start, stop) if label else None,
        repeated=len(label) <= LABEL,
    )


def _label(content: str) -> str:
    """A heading as it is shown: no marks, no anchor, one line."""
    source = _ANCHOR.sub("", content)
    if len(source) > LABEL:
        return " ".join(source.split())
    shown = "".join(_shown(token) for token in _PARSER.parseInline(source)[0].children or ())
    return " ".join(shown.split()) or " ".join(source.split())


def _shown(token: Token) -> str:
    if token.type in {"softbreak", "hardbreak"}:
        return " "
    return "" if token.type == "html_inline" else token.content


def _block(lines: _Lines, token: Token, tokens: list[Token], position: int) -> Block | None:
    if token.type == "hr" or not token.map:
        return None
    kind = _KINDS.get(token.type, Kind.PARAGRAPH)
    first, end = token.map
    if token.type == "fence":
        first, end = first + 1, first + 1 + _line_count(token.content)
    start, stop = lines.span(first, end)
    if kind is Kind.PARAGRAPH:
        start = stop - len(lines.text[start:stop].lstrip())
    if start >= stop:
        return None
    return Block(kind, start, stop, _marks(kind, lines, first, tokens, position))


def _line_count(content: str) -> int:
    """Lines of a fence's content; an unclosed fence may end without a line end."""
    return content.count("\n") + (not content.endswith("\n") and content != "")


def _marks(
    kind: Kind, lines: _Lines, first: int, tokens: list[Token], position: int
) -> tuple[int, ...]:
    if kind is Kind.TABLE:
        return (lines.start(first + _TABLE_HEAD),)
    if kind is Kind.LIST:
        return tuple(lines.start(line) for line in _items(tokens, position))
    return ()


def _items(tokens: list[Token], position: int) -> Iterator[int]:
    """First lines of the items of the list that opens at `position`."""
    for index in range(position + 1, len(tokens)):
        token = tokens[index]
        if token.level == 0:
            return
        if token.type == "list_item_open" and token.map:
            yield token.map[0]
