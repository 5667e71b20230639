"""YAML front matter: what a file says about itself, and on which line it says something wrong."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import yaml

from chassis.errors import InvalidInput
from corpus.points import State
from services.ingest import head, metadata
from services.ingest.metadata import Given, NotAllowed

LENGTH = 16_384  # characters; reading YAML takes far longer than reading text
DEPTH = 20

_OPENER = re.compile(r"\n*(?P<mark>---|\+\+\+|;;;)[ \t]*(?P<language>[A-Za-z]*)[ \t]*(?:\n|$)")
_CLOSER = {
    mark: re.compile(rf"^{re.escape(mark)}[ \t]*$", re.MULTILINE) for mark in ("---", "+++", ";;;")
}
_FIELD = re.compile(r"[ \t]*[\w-]+[ \t]*:([ \t]|$)", re.MULTILINE)
# What a page may say of itself beside its text, and which of Given's fields that is.
_SAID = {
    "version": "version",
    "area": "area",
    "document_type": "document_type",
    "publication_state": "state",
    "access": "access",
    "groups": "groups",
    "uri": "uri",
}
_NULL = "tag:yaml.org,2002:null"
_TEXTS = ("title", "version", "area", "document_type", "uri")
# What other tools call a draft.
_FLAGS = {"draft": True, "published": False}
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
# The one in C is many times faster, where it was built.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
    document, line and field; also where a field that says who may read would go unread.
    """
    found = _read(text, name)
    refuse_unread(text, name, found.body)
    return found


def said(fields: Mapping[str, str], name: str) -> Given:
    """What a page says of itself in fields of ours beside its text, such as in an HTML head.

    Groups are parted by commas. Raises InvalidInput (FRONT_MATTER_INVALID) that names document and
    field; also where a field that says who may read would go unread.
    """
    values: dict[str, object] = {}
    for given, value in fields.items():
        field = given.casefold()
        if field in _SAID:
            try:
                values[_SAID[field]] = _said(field, value)
            except NotAllowed as error:
                raise _wrong_field(name, field, str(error)) from error
        elif meant := head.meant(given):
            raise _wrong_field(name, given, f"unknown; {meant!r} is how it is written")
    return Given(**values)  # type: ignore[arg-type] # each field has its own reader


def _said(field: str, value: str) -> object:
    if field == "groups":
        return metadata.groups([group for group in value.split(",") if group.strip()])
    if field in metadata.SCALARS:
        return metadata.SCALARS[field](value.strip())
    return metadata.text(field, value)


def _wrong_field(name: str, field: str, complaint: str) -> InvalidInput:
    return InvalidInput(
        f"{name}: {field}: {complaint}",
        field=field,
        reason="FRONT_MATTER_INVALID",
        metadata={"document_id": name},
    )


def refuse_unread(text: str, name: str, start: int = 0) -> None:
    """Refuse a text that says who may read where it is not read, at `start` or below front matter.

    Raises InvalidInput (FRONT_MATTER_INVALID) that names document, line and field.
    """
    unread = head.unread(text, start, bare=start == 0)
    if unread:
        line = text.count("\n", 0, unread.position)
        complaint = f"is not read here; {unread.meant!r} belongs between lines of --- at the top"
        raise _Place(name, 0).wrong(line, unread.name, complaint)


def _read(text: str, name: str) -> FrontMatter:
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
        _check_depth(source, place)
        # Nodes are never turned into objects, so nothing in them is executed.
        return yaml.compose(source, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise place.wrong(line, "", f"not YAML: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        line = source.count("\n", 0, error.position)
        raise place.wrong(line, "", f"not YAML: {error.reason}") from error


def _check_depth(source: str, place: _Place) -> None:
    depth = 0
    for event in yaml.parse(source, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            line = event.start_mark.line if event.start_mark else 0
            raise place.wrong(line, "", f"nested more than {DEPTH} deep")


def _given(node: yaml.Node | None, place: _Place) -> Given:
    if node is None or node.tag == _NULL:
        return Given()
    if not isinstance(node, yaml.MappingNode):
        raise place.wrong(node.start_mark.line, "", "front matter is a list where fields belong")
    values: dict[str, object] = {}
    said: dict[str, str] = {}
    for field, line, value in _fields(node, place):
        name = "state" if field == "publication_state" or field in _FLAGS else field
        if said.get(name) == field:
            raise place.wrong(line, field, "stands here a second time")
        try:
            given = _value(field, value)
        except NotAllowed as error:
            raise place.wrong(value.start_mark.line, field, str(error)) from error
        if field in _FLAGS and given is None:
            continue
        if name in said and values[name] != given:
            raise place.wrong(line, field, f"contradicts {said[name]}")
        values[name], said[name] = given, field
    return Given(**values)  # type: ignore[arg-type] # each reader below gives its field's type


def _fields(node: yaml.MappingNode, place: _Place) -> Iterator[tuple[str, int, yaml.Node]]:
    for key, value in node.value:
        line = key.start_mark.line
        field = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
        if field in _READERS:
            yield field, line, value
        elif field == "<<":
            raise place.wrong(line, field, "merged fields are not read")
        elif meant := head.meant(field):
            raise place.wrong(line, field, f"unknown; {meant!r} is how it is written")
        else:
            _check_inside(value, place, set())


def _check_inside(node: yaml.Node, place: _Place, seen: set[int]) -> None:
    """Who may read is said at the top. Raises InvalidInput where it is said deeper."""
    if id(node) in seen or isinstance(node, yaml.ScalarNode):
        return
    seen.add(id(node))
    for item in node.value:
        key, value = item if isinstance(item, tuple) else (None, item)
        meant = head.meant(str(key.value)) if isinstance(key, yaml.ScalarNode) else ""
        if key is not None and meant:
            raise place.wrong(
                key.start_mark.line, key.value, f"not read in here; {meant!r} belongs further out"
            )
        _check_inside(value, place, seen)


def _value(field: str, node: yaml.Node) -> object:
    return None if node.tag == _NULL else _READERS[field](field, node)


def _text(field: str, node: yaml.Node) -> str:
    return metadata.text(field, _scalar(node))


def _choice(field: str, node: yaml.Node) -> object:
    return metadata.SCALARS[field](_scalar(node))


def _flag(field: str, node: yaml.Node) -> State | None:
    said = _scalar(node).casefold()
    if said not in _TRUE | _FALSE:
        if field == "draft":
            raise NotAllowed("expected true or false")
        return None  # a date
    return State.DRAFT if (said in _TRUE) is _FLAGS[field] else None


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
    **dict.fromkeys(_FLAGS, _flag),
}
