"""An answer as one text in Markdown, for faces that have no place for its parts.

What documents say of themselves stays inert in it, and the text loads nothing: whoever gets an
image into an answer would else learn by its address what was asked, and when.
"""

import re
from collections.abc import Iterator
from urllib.parse import quote

from gateway.outcome import Acceptance, Mode
from gateway.schema import AnswerResponse, SourceResponse

EXCERPT_CHARACTERS = 300
SUSPECTED = "holds text that speaks to a model rather than to people"

_MARK = re.compile(
    "[\\[\uff3b\u3010]{1,2}\\s*S[0-9]{1,4}(?:\\s*[,;\u3001\uff0c\uff1b]\\s*S[0-9]{1,4})*"
    "\\s*[\\]\uff3d\u3011]{1,2}"
)
_LABEL = re.compile("S[0-9]{1,4}")
# With a space behind it neither begins anything.
_LOADING = re.compile(
    r"!(?=\[)|<(?=(?:audio|base|body|embed|form|i?frame|image|img|input|link|meta|object|picture"
    r"|script|source|style|svg|table|track|video)[\s/])",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"([\\\[\]<`])")
_TICKS = re.compile("`+")
# Brackets would begin a link where the address is shown.
_ADDRESS = ":/?#@!$&'*+,;=%~"


def content_of(answer: AnswerResponse) -> str:
    """The text with its marks where they are, what has to be said of it, and the sources."""
    return "\n\n".join(filter(None, (_text(answer), _said(answer), _sources(answer))))


def marks_of(answer: AnswerResponse) -> Iterator[tuple[int, int, list[str]]]:
    """Where in that each mark begins and ends, and the labels in it."""
    for mark in _MARK.finditer(_text(answer)):
        yield mark.start(), mark.end(), _LABEL.findall(mark[0])


def _text(answer: AnswerResponse) -> str:
    return _LOADING.sub(r"\g<0> ", answer.text)


def _said(answer: AnswerResponse) -> str:
    """Nothing of an answer that was written for the question and accepted."""
    if (answer.mode, answer.acceptance) == (Mode.GENERATED, Acceptance.ACCEPTED):
        return ""
    said = _sentence(answer.message)
    return f"{said} Its answer will be at /v1/jobs/{answer.job_id}" if answer.job_id else said


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _sources(answer: AnswerResponse) -> str:
    if not answer.sources:
        return ""
    lines = (_line(source, excerpt=not answer.text) for source in answer.sources)
    return "\n".join(("Sources:", "", *lines))


def _line(source: SourceResponse, *, excerpt: bool) -> str:
    quoted = f": {_quoted(source.included_text)}" if excerpt else ""
    return f"- [{source.label}] {', '.join(_facts(source))}{quoted}"


def _facts(source: SourceResponse) -> Iterator[str]:
    yield _inert(source.title or source.document_id)
    if source.version:
        yield f"version {_inert(source.version)}"
    if source.heading_path:
        yield " \u203a ".join(map(_inert, source.heading_path))
    if source.uri:
        yield quote(source.uri, safe=_ADDRESS)
    if source.suspected_injection:
        yield SUSPECTED


def _inert(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _quoted(text: str) -> str:
    """The beginning of a text as a span of code, in which nothing is markup."""
    line = " ".join(text.split())
    if len(line) > EXCERPT_CHARACTERS:
        line = f"{line[:EXCERPT_CHARACTERS]}\u2026"
    fence = "`" * (max(map(len, _TICKS.findall(line)), default=0) + 1)
    return f"{fence} {line} {fence}"
