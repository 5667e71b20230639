"""Whether evidence that was found earlier may still be read now."""

import re
from dataclasses import dataclass

from chassis.errors import InvalidInput
from chassis.identity import Caller
from corpus.points import State
from corpus.scope import Scope
from services.retrieve import filters, guard
from services.retrieve.index import Index

LARGEST_CHECK = 1_000

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Passages as they were found: at which epoch, and among which states."""

    epoch: int
    point_ids: tuple[str, ...]
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """`gone` in the order asked; `epoch` is the current one."""

    gone: tuple[str, ...]
    epoch: int


async def standing(index: Index, evidence: Evidence, caller: Caller) -> Standing:
    """What of the evidence the caller may no longer read.

    Within one epoch nothing changes, so that the same epoch needs no second look. Raises
    InvalidInput, Forbidden, DataViolation, and what Index raises.
    """
    states = filters.states(evidence.states, caller)
    _require_ids(evidence.point_ids)
    version = await index.chunking_version()
    epoch = await index.epoch(caller.tenant)
    if epoch == evidence.epoch or not evidence.point_ids:
        return Standing((), epoch)
    scope = Scope.of(caller, epoch=epoch, states=states, chunking_version=version)
    points = await index.among(evidence.point_ids, scope)
    # A point that breaks the contract fails the check: nobody may take it for good evidence.
    held = {point.id for point in points if guard.readable(point.id, point.fields, scope)}
    return Standing(tuple(name for name in evidence.point_ids if name not in held), epoch)


def _require_ids(point_ids: tuple[str, ...]) -> None:
    if len(point_ids) > LARGEST_CHECK:
        raise InvalidInput(f"more than {LARGEST_CHECK} ids", field="point_ids")
    for name in point_ids:
        if not _UUID.fullmatch(name):
            raise InvalidInput("a point id is a UUID in lower case", field="point_ids")
