"""Who may read, said at a document's head in a way that is not read: to be refused, not shown.

Front matter with a slip in its first line is text to a parser. Its text would be published with
the access of a document that says nothing.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LINES = 40
LENGTH = 400  # characters of a line that are looked at
NAME = 40  # characters of the longest name of a field
WORDS = 4  # of a field's name; of a value where no opener says that it is one

_ACCESS, _GROUPS, _STATE = _SCOPE = ("access", "groups", "publication_state")
_MEANINGS = {
    **dict.fromkeys(("access", "accesses", "accesslevel", "visibility"), _ACCESS),
    **dict.fromkeys(("permission", "permissions", "group", "groups"), _GROUPS),
    **dict.fromkeys(("draft", "drafts", "state", "publicationstate"), _STATE),
}
_ALIKE = 0.9
# Letters of other scripts that look like those of our fields' names.
_LOOKALIKES = str.maketrans("асԁеһіӏмопрѕтуѵαεικνορτυɡıʏ", "acdehilmonpstyvaeiknoptugiy")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_GAPS = re.compile(r"[\W_]+")

_INVISIBLE = r"\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
_LEAD = re.compile(rf"(?:[{_INVISIBLE}]|<!--.*?-->)*", re.DOTALL)
_EDGES = re.compile(rf"^[{_INVISIBLE}]+|[{_INVISIBLE}]+$")
_RULE = re.compile(r"(?:[-‐‑‒–—―−﹘﹣－+=;*_]{2,}|[–—―])(?!\S*[:=]).*|\{")  # noqa: RUF001 - what editors make of dashes
_CODE = re.compile(r"```|~~~")
_FIELD = re.compile(
    rf"(?:[-*+>{{]\s+|[{{*\"'`])*(?P<name>[^:=：|]{{1,{NAME}}})[:=：](?P<value>.*)"  # noqa: RUF001 - a colon to some
)


@dataclass(frozen=True, slots=True)
class Unread:
    """A field that was not read, where it stands in the text, and the one that was meant."""

    name: str
    position: int
    meant: str


def meant(name: str) -> str:
    """Our field that a name resembles, of those that say who may read; empty if none."""
    words = _words(name)
    if not words or len(words) > WORDS:
        return ""
    first, joined = words[0], "".join(words)
    if first == "publication":
        # Not its date.
        return _STATE if _like(words[1:2] or ["state"], ("state", "status")) else ""
    if found := _MEANINGS.get(first) or _MEANINGS.get(joined):
        return found
    return _like(words, _SCOPE)


def _like(words: Sequence[str], names: Sequence[str]) -> str:
    alike = difflib.get_close_matches("_".join(words), names, n=1, cutoff=_ALIKE)
    return alike[0] if alike else ""


def unread(text: str, start: int, *, bare: bool) -> Unread | None:
    """The first field that says who may read in what resembles front matter, from `start` on.

    `bare` says that no front matter was read, so that an opener alone makes what follows one.
    """
    lines = _lines(text, start)
    rules = [number for number, line in enumerate(lines) if line.rule]
    if bare and lines and not lines[0].rule:
        paragraph = _paragraph(lines)
        if all(line.short for line in paragraph) and (found := _first(paragraph)):
            return found
    for number, opener in enumerate(rules):
        closed = number + 1 < len(rules)
        inside = lines[opener + 1 : rules[number + 1] if closed else len(lines)]
        fields = closed and _fields(inside)
        if (fields or (bare and opener == 0)) and (found := _first(inside)):
            return found
    return None


@dataclass(frozen=True, slots=True)
class _Line:
    shown: str
    position: int
    code: bool

    @property
    def rule(self) -> bool:
        return not self.code and bool(_RULE.fullmatch(self.shown))

    @property
    def field(self) -> re.Match[str] | None:
        return None if self.code else _FIELD.match(self.shown)

    @property
    def short(self) -> bool:
        """Whether its value is one of a field, and no sentence."""
        field = self.field
        return field is not None and len(field["value"].split()) <= WORDS


def _lines(text: str, start: int) -> list[_Line]:
    lead = _LEAD.match(text, start)
    position = lead.end() if lead else start
    found: list[_Line] = []
    code = False
    # A line ends where an editor shows its end, which is not only at line feeds.
    for line in text[position : position + LINES * 1_000].splitlines(keepends=True)[:LINES]:
        shown = _EDGES.sub("", line[:LENGTH])
        fence = bool(_CODE.match(shown))
        indented = bool(found) and line.startswith(("    ", "\t"))
        found.append(
            _Line(shown, position, code or fence or (indented and not _FIELD.match(shown)))
        )
        code ^= fence
        position += len(line)
    return found


def _fields(lines: Sequence[_Line]) -> bool:
    """Whether these are fields and nothing else; below a break between parts comes a blank line."""
    directly = bool(lines) and bool(lines[0].shown)
    return directly and all(line.field or not line.shown for line in lines)


def _paragraph(lines: Sequence[_Line]) -> Sequence[_Line]:
    end = next((number for number, line in enumerate(lines) if not line.shown), len(lines))
    return lines[:end]


def _first(lines: Sequence[_Line]) -> Unread | None:
    return next(_unread(lines), None)


def _unread(lines: Sequence[_Line]) -> Iterator[Unread]:
    for line in lines:
        if (field := line.field) and (ours := _meant(field["name"], field["value"])):
            yield Unread(field["name"].strip(), line.position, ours)


def _meant(name: str, value: str) -> str:
    # Of a published document, most say when it was.
    if _words(name) == ["published"] and value.strip().casefold() in {"false", "no", "off"}:
        return _STATE
    return meant(name)


def _words(name: str) -> list[str]:
    """A name as it looks: no case, accents, invisible characters, other scripts' letters."""
    spelled = unicodedata.normalize("NFKD", _CAMEL.sub(" ", name))
    seen = "".join(
        letter for letter in spelled if unicodedata.category(letter) not in {"Mn", "Cf", "Cc"}
    )
    return _GAPS.sub(" ", seen.casefold().translate(_LOOKALIKES)).split()
