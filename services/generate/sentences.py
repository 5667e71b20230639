"""Where sentences, items and rows begin and end, without changing a character of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# As far as is looked around a full stop: further than any abbreviation or month is long.
AROUND = 32
# A full stop, its closing quotes, and white space; scripts without spaces need none after theirs.
# Runs are bounded, and looked at from their first mark only: dot leaders can be very long.
_STOP = re.compile(
    "(?<![.!?\u2026])[.!?\u2026]{1,8}[\"'\u201d\u2019\u00bb)\\]]{0,4}(?=\\s)"
    "|[\u3002\uff01\uff1f]{1,8}[\u300d\u300f\u201d]{0,4}"
)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
# What may stand before a full stop that ends no sentence.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|e\.g|i\.e|vs|cf|approx|dr|mr|mrs|ms|st|resp"
    r"|bzw|ca|usw|evtl|ggf|inkl|vgl|z\.\s?b|d\.\s?h|u\.\s?a"
    r"|p\.\s?ex|sr|sra|exmo)$",
    re.IGNORECASE,
)
# What does so only before a number, and numbers before a month.
_BEFORE_NUMBER = re.compile(r"(?:^|[\s(])(?:no|nr|fig|art|abs|p|pp|tel)$", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:^|\s)\d{1,2}$")
_MONTH = re.compile(r"(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")


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
    rest = text[stop.end() : min(end, stop.end() + AROUND)].lstrip()
    # What goes on in lower case is one sentence, whatever the mark before it.
    if rest and rest[0].islower():
        return False
    before = text[max(start, stop.start() - AROUND) : stop.start()]
    return stop[0] != "." or not _is_abbreviated(before, rest)


def _is_abbreviated(before: str, rest: str) -> bool:
    if _BEFORE_NUMBER.search(before):
        return rest[:1].isdigit()
    if _ORDINAL.search(before):
        return bool(_MONTH.match(rest))
    return bool(_ABBREVIATION.search(before))


def _filled(text: str, start: int, end: int) -> Iterator[Span]:
    span = _trimmed(text, start, end)
    if span.start < span.end:
        yield span


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return Span(start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip())))
