"""Citation marks in an answer: [S1], [S1, S2], and the same in full-width brackets."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from services.generate.sentences import Span, Splitter, trimmed

_OPENING = re.compile("[\\[\uff3b\u3010]")
_LABEL = re.compile(r"S[0-9]{1,4}")


class _Sign(Enum):
    OPEN = auto()
    CLOSE = auto()
    COMMA = auto()
    LETTER = auto()
    DIGIT = auto()
    SPACE = auto()
    OTHER = auto()


class _Seen(Enum):
    """What has been read of something that may be a mark."""

    NOTHING = auto()
    OPEN = auto()
    TWO_OPEN = auto()
    BEFORE_LABEL = auto()
    LETTER = auto()
    DIGIT = auto()
    TWO_DIGITS = auto()
    THREE_DIGITS = auto()
    FOUR_DIGITS = auto()
    AFTER_LABEL = auto()
    CLOSED = auto()
    TWO_CLOSED = auto()


_SIGNS = {
    sign: kind
    for kind, signs in (
        (_Sign.OPEN, "[\uff3b\u3010"),
        (_Sign.CLOSE, "]\uff3d\u3011"),
        (_Sign.COMMA, ",;\u3001\uff0c\uff1b"),
        (_Sign.LETTER, "S"),
        (_Sign.DIGIT, "0123456789"),
    )
    for sign in signs
}
_LABELLED = {
    _Sign.COMMA: _Seen.BEFORE_LABEL,
    _Sign.SPACE: _Seen.AFTER_LABEL,
    _Sign.CLOSE: _Seen.CLOSED,
}
_BEGUN = {_Sign.SPACE: _Seen.BEFORE_LABEL, _Sign.LETTER: _Seen.LETTER}
_NEXT: dict[_Seen, dict[_Sign, _Seen]] = {
    _Seen.NOTHING: {_Sign.OPEN: _Seen.OPEN},
    _Seen.OPEN: {_Sign.OPEN: _Seen.TWO_OPEN, **_BEGUN},
    _Seen.TWO_OPEN: _BEGUN,
    _Seen.BEFORE_LABEL: _BEGUN,
    _Seen.LETTER: {_Sign.DIGIT: _Seen.DIGIT},
    _Seen.DIGIT: {_Sign.DIGIT: _Seen.TWO_DIGITS, **_LABELLED},
    _Seen.TWO_DIGITS: {_Sign.DIGIT: _Seen.THREE_DIGITS, **_LABELLED},
    _Seen.THREE_DIGITS: {_Sign.DIGIT: _Seen.FOUR_DIGITS, **_LABELLED},
    _Seen.FOUR_DIGITS: _LABELLED,
    _Seen.AFTER_LABEL: _LABELLED,
    _Seen.CLOSED: {_Sign.CLOSE: _Seen.TWO_CLOSED},
    _Seen.TWO_CLOSED: {},
}
_WHOLE = frozenset({_Seen.CLOSED, _Seen.TWO_CLOSED})


@dataclass(frozen=True, slots=True)
class Mark:
    span: Span
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence, with the labels of the marks in it and right after it; `span` holds both."""

    span: Span
    text: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text, or one mark: `labels` are empty for text."""

    text: str
    labels: tuple[str, ...] = ()


class Marks:
    """Tells marks from text as an answer comes, and holds only what may become a mark."""

    def __init__(self) -> None:
        self._held = ""
        # How far the held text is known to go on as a mark, and what that made of it.
        self._read, self._seen = 0, _Seen.NOTHING

    def take(self, text: str) -> list[Piece]:
        """Pieces that nothing can change. Joined, they are the text without what is held."""
        self._held += text
        return list(self._pieces())

    def rest(self) -> list[Piece]:
        """What is held, when nothing more comes."""
        pieces = []
        while self._held:
            pieces.append(self._first())
            pieces += self._pieces()
        return pieces

    def _pieces(self) -> Iterator[Piece]:
        while self._held:
            if self._seen is _Seen.NOTHING:
                opening = _OPENING.search(self._held)
                if at := opening.start() if opening else len(self._held):
                    yield Piece(self._held[:at])
                    self._held = self._held[at:]
            if self._goes_on():
                return
            yield self._first()

    def _goes_on(self) -> bool:
        """Whether all that is held may be the beginning of one mark."""
        for sign in self._held[self._read :]:
            kind = _Sign.SPACE if sign.isspace() else _SIGNS.get(sign, _Sign.OTHER)
            if kind not in _NEXT[self._seen]:
                return False
            self._seen = _NEXT[self._seen][kind]
            self._read += 1
        return True

    def _first(self) -> Piece:
        """The mark that was read, else the sign that began none."""
        if self._seen not in _WHOLE:
            return Piece(self._cut(1))
        text = self._cut(self._read)
        return Piece(text, tuple(_LABEL.findall(text)))

    def _cut(self, at: int) -> str:
        text, self._held = self._held[:at], self._held[at:]
        self._read, self._seen = 0, _Seen.NOTHING
        return text


class Statements:
    """The statements of an answer as it comes, each as soon as no further mark can be its own."""

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._plain: list[str] = []
        self._base = 0
        self._length = 0
        self._marks: list[Mark] = []
        self._sentence: tuple[Span, str] | None = None

    def take(self, pieces: Sequence[Piece]) -> list[Statement]:
        found: list[Statement] = []
        for piece in pieces:
            found += self._divided(self._splitter.take(self._blanked(piece)))
            if self._splitter.opened is not None:
                found += self._told(self._splitter.opened)
        return found

    def rest(self) -> list[Statement]:
        """What is left, when nothing more comes."""
        return [*self._divided(self._splitter.rest()), *self._told(self._length)]

    def _blanked(self, piece: Piece) -> str:
        """The piece with blanks for a mark, so that offsets stay."""
        plain = " " * len(piece.text) if piece.labels else piece.text
        start, self._length = self._length, self._length + len(plain)
        if piece.labels:
            self._marks.append(Mark(Span(start, self._length), piece.labels))
        self._plain.append(plain)
        return plain

    def _divided(self, parts: Sequence[Span]) -> Iterator[Statement]:
        if not parts:
            return
        plain, base, end = "".join(self._plain), self._base, parts[-1].end
        self._plain, self._base = [plain[end - base :]], end
        for part in parts:
            span = trimmed(plain, part.moved(-base))
            if span:
                yield from self._told(span.start + base)
                self._sentence = (span.moved(base), span.of(plain))

    def _told(self, until: int) -> Iterator[Statement]:
        """The finished sentence with its marks, now that the next one begins at `until`."""
        if self._sentence:
            marks = [mark for mark in self._marks if mark.span.start < until]
            self._marks = self._marks[len(marks) :]
            yield _statement(*self._sentence, marks)
            self._sentence = None


def marks(text: str) -> list[Mark]:
    """All marks in order. Other brackets, such as arr[0] or [1.5], are text."""
    found, at = [], 0
    reader = Marks()
    for piece in (*reader.take(text), *reader.rest()):
        if piece.labels:
            found.append(Mark(Span(at, at + len(piece.text)), piece.labels))
        at += len(piece.text)
    return found


def statements(text: str) -> list[Statement]:
    """The sentences of an answer, each with what it cites."""
    reader, found = Marks(), Statements()
    pieces = [*reader.take(text), *reader.rest()]
    return [*found.take(pieces), *found.rest()]


def _statement(span: Span, text: str, cited: Sequence[Mark]) -> Statement:
    labels = dict.fromkeys(label for mark in cited for label in mark.labels)
    whole = Span(
        min([span.start, *(mark.span.start for mark in cited)]),
        max([span.end, *(mark.span.end for mark in cited)]),
    )
    return Statement(whole, text, tuple(labels))
