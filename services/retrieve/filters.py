"""What a request asks to be left out. Filters only ever narrow what the caller may read."""

from collections.abc import Collection
from dataclasses import dataclass

from chassis.errors import Forbidden
from chassis.identity import Caller
from corpus.points import State

DRAFTS_ROLE = "drafts"


@dataclass(frozen=True, slots=True)
class Filters:
    """Values to keep in each field; an empty tuple keeps all."""

    document_types: tuple[str, ...] = ()
    document_ids: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()


def states(asked: Collection[State], caller: Caller) -> tuple[State, ...]:
    """The states to search: published unless told otherwise. Raises Forbidden without the role."""
    if State.DRAFT in asked and DRAFTS_ROLE not in caller.roles:
        raise Forbidden(f"drafts need the role {DRAFTS_ROLE}", reason="ROLE_MISSING")
    return tuple(sorted(set(asked))) or (State.PUBLISHED,)
