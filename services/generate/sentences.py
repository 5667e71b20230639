"""Where sentences, items and rows begin and end, without changing a character of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# As far as is looked around a full stop: further than any abbreviation or month is long.
AROUND = 32
# So many visible characters after a full stop decide whether it ends a sentence, and no more.
AHEAD = 5
# An end of a sentence: a full stop, its closing quotes, and white space; scripts without spaces
# need none after theirs. Or a gap between paragraphs, or the mark of a list's item. All of them are
# bounded, and stops are looked at from their first mark only: dot leaders can be very long.
_CUT = re.compile(
    "(?P<stop>(?<![.!?\u2026])[.!?\u2026]{1,8}[\"'\u201d\u2019\u00bb)\\]]{0,4}(?=\\s)"
    "|[\u3002\uff01\uff1f]{1,8}[\u300d\u300f\u201d]{0,4})"
    r"|\n[ \t\r]{0,64}\n"
    r"|^[ \t]{0,64}(?:[-*+•]|\d{1,3}[.)])[ \t]+",
    re.MULTILINE,
)
# Longer than a cut can be before its last character is known.
_REACH = 80
_VISIBLE = re.compile(r"\S")
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
    splitter = Splitter()
    regions = [*splitter.take(text), *splitter.rest()]
    return [span for region in regions if (span := trimmed(text, region))]


class Splitter:
    """Divides a text that comes in pieces, each part told as soon as nothing can change it.

    Offsets are those of the whole text. A part may have white space around its sentence, or be
    nothing else; between parts lie the marks of list items. `opened` is where the sentence after
    the last part begins, None as long as that is not certain.
    """

    def __init__(self) -> None:
        # As much of the text as can still matter, and where that begins in the whole.
        self._window, self._base = "", 0
        self._at = 0
        self._searched = 0
        self.opened: int | None = None

    def take(self, more: str) -> list[Span]:
        self._window += more
        parts = list(self._parts(is_whole=False))
        self._forget()
        return parts

    def rest(self) -> list[Span]:
        """What is left, when nothing more comes."""
        parts = list(self._parts(is_whole=True))
        return [*parts, Span(self._at, self._base + len(self._window))]

    def _parts(self, *, is_whole: bool) -> Iterator[Span]:
        while cut := _CUT.search(self._window, self._searched - self._base):
            if not (is_whole or self._is_certain(cut.end())):
                self._searched = self._base + cut.start()
                break
            self._searched = self._base + cut.end()
            is_stop = cut["stop"] is not None
            if is_stop and not _is_end(self._window, max(0, self._at - self._base), cut):
                continue
            yield Span(self._at, self._base + (cut.end() if is_stop else cut.start()))
            self._at, self.opened = self._searched, None
        else:
            self._searched = max(self._searched, self._base + len(self._window) - _REACH)
        self._open(self._base + cut.start() if cut else None)

    def _open(self, doubtful: int | None) -> None:
        """Sees whether the next sentence has begun; from `doubtful` on it may be a mark."""
        visible = _VISIBLE.search(self._window, max(0, self._at - self._base))
        if self.opened is None and visible and self._is_certain(visible.start()):
            start = self._base + visible.start()
            self.opened = start if doubtful is None or start < doubtful else None

    def _is_certain(self, at: int) -> bool:
        after = self._window[at : at + AROUND]
        return len(after) == AROUND or len(after.lstrip()) >= AHEAD

    def _forget(self) -> None:
        needless = self._searched - self._base - AROUND - 1
        if needless > 0:
            self._window = self._window[needless:]
            self._base += needless


def lines(text: str) -> list[Span]:
    """Lines that are not empty, without the white space around them."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        found.append(trimmed(text, Span(at, at + len(line))))
        at += len(line)
    return [span for span in found if span]


def trimmed(text: str, span: Span) -> Span | None:
    """The span without the white space around it; None where it holds nothing else."""
    piece = span.of(text)
    visible = piece.strip()
    start = span.start + len(piece) - len(piece.lstrip())
    return Span(start, start + len(visible)) if visible else None


def _is_end(text: str, start: int, stop: re.Match[str]) -> bool:
    rest = text[stop.end() : stop.end() + AROUND].lstrip()
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
