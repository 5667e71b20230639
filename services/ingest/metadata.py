"""Which values a document's metadata may have, whoever gives them."""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from chassis.identity import AccessLevel
from corpus.points import EVERYBODY, State
from services.ingest.document import Metadata

GROUPS = 64
GROUP_LENGTH = 128
# Longest value of each text field, in characters.
LENGTHS = {"title": 512, "version": 128, "area": 128, "document_type": 128, "uri": 2_048}
# Persian, Indian languages and emoji are written with them.
_JOINERS = "\u200c\u200d"


class NotAllowed(ValueError):
    """A value that its field cannot have; the message names neither document nor field."""


@dataclass(frozen=True, slots=True)
class Given:
    """What somebody said about a document. None is nothing said."""

    title: str | None = None
    version: str | None = None
    area: str | None = None
    document_type: str | None = None
    state: State | None = None
    access: AccessLevel | None = None
    groups: tuple[str, ...] | None = None
    uri: str | None = None

    def resolved(self, under: "Given", *, title: str, access: AccessLevel) -> Metadata:
        """These values, then those `under` them, then the defaults.

        Of two access levels or states the narrower holds: neither side shows what the other hides.
        """

        def first(name: str) -> str:
            return getattr(self, name) or getattr(under, name) or ""

        states = {self.state, under.state}
        levels = [level for level in (self.access, under.access) if level is not None]
        groups = under.groups if self.groups is None else self.groups
        return Metadata(
            title=first("title") or title,
            version=first("version"),
            area=first("area"),
            document_type=first("document_type"),
            state=State.DRAFT if State.DRAFT in states else State.PUBLISHED,
            access=max(levels, default=access),
            groups=groups or (),
            uri=first("uri"),
        )


def can_be_shown(value: str) -> bool:
    """Whether people can see it all. Spaces of every script and joiners within words are seen."""
    return all(
        sign.isprintable() or sign in _JOINERS or unicodedata.category(sign) == "Zs"
        for sign in value
    )


def text(field: str, value: str) -> str:
    """The value without white space around it. Raises NotAllowed."""
    value = value.strip()
    if len(value) > LENGTHS[field]:
        raise NotAllowed(f"{len(value)} characters where {LENGTHS[field]} are allowed")
    if not can_be_shown(value):
        raise NotAllowed("holds characters that cannot be shown")
    if field == "uri" and value:
        _check_uri(value)
    return value


def access(value: str) -> AccessLevel:
    """The level of that name. Raises NotAllowed that lists the names."""
    try:
        return AccessLevel.parse(value)
    except ValueError as error:
        raise NotAllowed(str(error)) from error


def state(value: str) -> State:
    """The state of that name. Raises NotAllowed that lists the names."""
    try:
        return State(value)
    except ValueError as error:
        allowed = ", ".join(State)
        raise NotAllowed(f"{value!r} is not a publication state; allowed: {allowed}") from error


def groups(values: list[str]) -> tuple[str, ...]:
    """The groups, sorted, each once. Raises NotAllowed."""
    found = sorted({value.strip() for value in values})
    if len(found) > GROUPS:
        raise NotAllowed(f"{len(found)} groups where {GROUPS} are allowed")
    for group in found:
        if not 0 < len(group) <= GROUP_LENGTH or not group.isprintable() or group == EVERYBODY:
            raise NotAllowed(f"{group[:GROUP_LENGTH]!r} cannot name a group")
    return tuple(found)


def _check_uri(value: str) -> None:
    # Other schemes would run in the reader's browser.
    try:
        address = urlsplit(value)
    except ValueError as error:
        raise NotAllowed("not a web address") from error
    if address.scheme not in {"http", "https"} or not address.netloc:
        raise NotAllowed("not a web address that begins with http:// or https://")


SCALARS: Mapping[str, Callable[[str], object]] = {
    "publication_state": state,
    "access": access,
}
