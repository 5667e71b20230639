"""Citation marks in an answer: [S1], [S1, S2], and the same in full-width brackets."""

import re
from dataclasses import dataclass

from services.generate.sentences import Span, sentences

_OPEN, _CLOSE, _COMMA = "[\\[\uff3b\u3010]", "[\\]\uff3d\u3011]", "[,;\u3001\uff0c\uff1b]"
_LABEL = r"S[0-9]{1,4}"
_MARK = re.compile(rf"{_OPEN}{{1,2}}\s*({_LABEL}(?:\s*{_COMMA}\s*{_LABEL})*)\s*{_CLOSE}{{1,2}}")


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


def marks(text: str) -> list[Mark]:
    """All marks in order. Other brackets, such as arr[0] or [1.5], are text."""
    return [
        Mark(Span(*found.span()), tuple(re.findall(_LABEL, found[1])))
        for found in _MARK.finditer(text)
    ]


def statements(text: str) -> list[Statement]:
    """The sentences of an answer, each with what it cites."""
    found = marks(text)
    spans = sentences(_without(text, found))
    cited: dict[int, list[Mark]] = {}
    for mark in found:
        # A mark belongs to the sentence around it, else to the one before it.
        before = [at for at, span in enumerate(spans) if span.start <= mark.span.start]
        cited.setdefault(before[-1] if before else 0, []).append(mark)
    return [_statement(text, span, cited.get(at, [])) for at, span in enumerate(spans)]


def _statement(text: str, span: Span, cited: list[Mark]) -> Statement:
    labels = dict.fromkeys(label for mark in cited for label in mark.labels)
    whole = Span(
        min([span.start, *(mark.span.start for mark in cited)]),
        max([span.end, *(mark.span.end for mark in cited)]),
    )
    return Statement(whole, _without(text, cited)[span.start : span.end], tuple(labels))


def _without(text: str, found: list[Mark]) -> str:
    """The text with blanks in place of the marks, so that offsets stay."""
    for mark in found:
        blank = " " * (mark.span.end - mark.span.start)
        text = text[: mark.span.start] + blank + text[mark.span.end :]
    return text
