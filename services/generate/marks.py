"""Citation marks in an answer: [S1], [S1, S2], and the same in full-width brackets."""

import re
from bisect import bisect_right
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
    # Blanks in place of the marks, so that offsets stay.
    plain = _MARK.sub(lambda mark: " " * len(mark[0]), text)
    spans = sentences(plain)
    starts = [span.start for span in spans]
    cited: dict[int, list[Mark]] = {}
    for mark in found:
        # A mark belongs to the sentence around it, else to the one before it.
        at = max(bisect_right(starts, mark.span.start) - 1, 0)
        cited.setdefault(at, []).append(mark)
    return [_statement(plain, span, cited.get(at, [])) for at, span in enumerate(spans)]


def _statement(plain: str, span: Span, cited: list[Mark]) -> Statement:
    labels = dict.fromkeys(label for mark in cited for label in mark.labels)
    whole = Span(
        min([span.start, *(mark.span.start for mark in cited)]),
        max([span.end, *(mark.span.end for mark in cited)]),
    )
    return Statement(whole, span.of(plain), tuple(labels))
