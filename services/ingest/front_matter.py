"""YAML front matter: what a file says about itself, and on which line it says something wrong."""

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import yaml

from chassis.errors import InvalidInput
from services.ingest import metadata
from services.ingest.metadata import Given, NotAllowed

LENGTH = 65_536  # characters; reading YAML takes far longer than reading text

_OPENER = re.compile(r"\n*(?P<mark>---|\+\+\+|;;;)[ \t]*(?P<language>[A-Za-z]*)[ \t]*(?:\n|$)")
_CLOSER = {
    mark: re.compile(rf"^{re.escape(mark)}[ \t]*$", re.MULTILINE) for mark in ("---", "+++", ";;;")
}
_FIELD = re.compile(r"[ \t]*[\w-]+[ \t]*:([ \t]|$)", re.MULTILINE)
_NULL = "tag:yaml.org,2002:null"
_TEXTS = ("title", "version", "area", "document_type", "uri")
# A slip in one of these shows a document to the wrong people, so it is not taken for an unknown
# field.
_SCOPE = ("access", "groups", "publication_state")
_ALIKE = 0.9


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """`body` is the position of the first character after it."""

    given: Given
    body: int


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a complaint belongs. `line` is the number of the line that opens the front matter."""

    name: str
    line: int

    def wrong(self, line: int, field: str, complaint: str) -> InvalidInput:
        number = self.line + line + 1
        where = f"{field}: " if field else ""
        return InvalidInput(
            f"{self.name}, line {number}: {where}{complaint}",
            field=field or "front_matter",
            reason="FRONT_MATTER_INVALID",
            metadata={"document_id": self.name, "line": str(number)},
        )


def read(text: str, name: str) -> FrontMatter:
    """What stands at the head of the text, which may be nothing.

    Fields that are not ours are passed over. Raises InvalidInput (FRONT_MATTER_INVALID) that names
    document, line and field.
    """
    nothing = FrontMatter(Given(), 0)
    opener = _OPENER.match(text)
    if opener is None:
        return nothing
    place = _Place(name, text.count("\n", 0, opener.end("mark")) + 1)
    closer = _CLOSER[opener["mark"]].search(text, opener.end())
    if closer is None:
        # Prose under a line of dashes is prose. A field there was meant to say who may read.
        if opener["mark"] == "---" and _FIELD.match(text, opener.end()):
            raise place.wrong(-1, "", "front matter begins here and is never closed by ---")
        return nothing
    if opener["mark"] != "---" or opener["language"].lower() not in {"", "yaml", "yml"}:
        kind = f"{opener['mark']}{opener['language']}"
        raise place.wrong(-1, "", f"front matter of the kind {kind}; only YAML is read")
    source = text[opener.end() : closer.start()]
    if len(source) > LENGTH:
        raise place.wrong(-1, "", f"front matter of more than {LENGTH:,} characters")
    node = _composed(source, place)
    if isinstance(node, yaml.ScalarNode) and node.tag != _NULL:
        return nothing  # prose between two lines of dashes
    return FrontMatter(_given(node, place), min(closer.end() + 1, len(text)))


def _composed(source: str, place: _Place) -> yaml.Node | None:
    try:
        # Nodes are never turned into objects, so nothing in them is executed.
        return yaml.compose(source, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise place.wrong(line, "", f"not YAML: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        line = source.count("\n", 0, error.position)
        raise place.wrong(line, "", f"not YAML: {error.reason}") from error
    except RecursionError as error:
        raise place.wrong(0, "", "not YAML: nested too deeply") from error


def _given(node: yaml.Node | None, place: _Place) -> Given:
    if node is None or node.tag == _NULL:
        return Given()
    if not isinstance(node, yaml.MappingNode):
        raise place.wrong(node.start_mark.line, "", "front matter is a list where fields belong")
    values: dict[str, object] = {}
    for field, line, value in _fields(node, place):
        name = "state" if field == "publication_state" else field
        if name in values:
            raise place.wrong(line, field, "stands here a second time")
        try:
            values[name] = _value(field, value)
        except NotAllowed as error:
            raise place.wrong(value.start_mark.line, field, str(error)) from error
    return Given(**values)  # type: ignore[arg-type] # each reader below gives its field's type


def _fields(node: yaml.MappingNode, place: _Place) -> Iterator[tuple[str, int, yaml.Node]]:
    for key, value in node.value:
        line = key.start_mark.line
        field = key.value if isinstance(key, yaml.ScalarNode) else ""
        if field in _READERS:
            yield field, line, value
        elif field == "<<":
            raise place.wrong(line, field, "merged fields are not read")
        elif meant := _slip(field):
            raise place.wrong(line, field, f"unknown; {meant!r} is how it is written")


def _slip(field: str) -> str:
    """The scope's field that was probably meant."""
    folded = re.sub(r"[\s-]+", "_", field.casefold())
    if folded in {"access_level", "accesslevel"}:
        return "access"
    alike = difflib.get_close_matches(folded, _SCOPE, n=1, cutoff=_ALIKE)
    return alike[0] if alike else ""


def _value(field: str, node: yaml.Node) -> object:
    return None if node.tag == _NULL else _READERS[field](field, node)


def _text(field: str, node: yaml.Node) -> str:
    return metadata.text(field, _scalar(node))


def _choice(field: str, node: yaml.Node) -> object:
    return metadata.SCALARS[field](_scalar(node))


def _groups(_field: str, node: yaml.Node) -> tuple[str, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise NotAllowed("expected a list of groups, such as [sre, dba]")
    return metadata.groups([_scalar(item) for item in node.value])


def _scalar(node: yaml.Node) -> str:
    # Taken as it is written: version 1.10 is not the number 1.1.
    if not isinstance(node, yaml.ScalarNode) or node.tag == _NULL:
        raise NotAllowed("expected one text")
    return str(node.value)


_READERS: dict[str, Callable[[str, yaml.Node], object]] = {
    **dict.fromkeys(_TEXTS, _text),
    "publication_state": _choice,
    "access": _choice,
    "groups": _groups,
}
