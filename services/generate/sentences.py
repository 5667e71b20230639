"""Where sentences, items and rows begin and end, without changing a character of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A full stop, its closing quotes, and white space; scripts without spaces need none after theirs.
_STOP = re.compile(
    "[.!?\u2026]+[\"'\u201d\u2019\u00bb)\\]]*(?=\\s)|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d]*"
)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
# What may stand before a full stop that ends no sentence.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|\d{1,3}|e\.g|i\.e|etc|vs|cf|no|approx|dr|mr|mrs|ms|st|fig|resp"
    r"|bzw|ca|nr|usw|evtl|ggf|inkl|vgl|abs|art|z\.\s?b|d\.\s?h|u\.\s?a"
    r"|p\.\s?ex|sr|sra|ex|exmo|pag|tel)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Span:
    """Code points from `start` up to `end`."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]

    def moved(self, by: int) -> "Span":
        return Span(self.start + by, self.end + by)


def sentences(text: str) -> list[Span]:
    """Sentences of prose and lists in order. Paragraphs and list items end sentences too."""
    return [span for part in _parts(text) for span in _within(text, part)]


def lines(text: str) -> list[Span]:
    """Lines that are not empty, without the white space around them."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        found.append(_trimmed(text, at, at + len(line)))
        at += len(line)
    return [span for span in found if span.start < span.end]


def _parts(text: str) -> Iterator[Span]:
    """Paragraphs and list items, without the items' own marks."""
    cuts = [(mark.start(), mark.end()) for mark in _PARAGRAPH.finditer(text)]
    cuts += [(mark.start(), mark.end()) for mark in _ITEM.finditer(text)]
    at = 0
    for start, end in [*sorted(cuts), (len(text), len(text))]:
        if start > at:
            yield Span(at, start)
        at = max(at, end)


def _within(text: str, part: Span) -> Iterator[Span]:
    at = part.start
    for stop in _STOP.finditer(text, part.start, part.end):
        if not _is_end(text, at, stop, part.end):
            continue
        yield from _filled(text, at, stop.end())
        at = stop.end()
    yield from _filled(text, at, part.end)


def _is_end(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    if stop[0] == "." and _ABBREVIATION.search(text, start, stop.start()):
        return False
    rest = text[stop.end() : end].lstrip()
    # What goes on in lower case is one sentence, whatever the mark before it.
    return not (rest and rest[0].islower())


def _filled(text: str, start: int, end: int) -> Iterator[Span]:
    span = _trimmed(text, start, end)
    if span.start < span.end:
        yield span


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return Span(start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip())))
