"""What a caller may read, as a condition inside the query and as a check of what came back."""

from collections.abc import Sequence
from dataclasses import dataclass

from chassis.identity import AccessLevel, Caller
from corpus.points import EVERYBODY, Key, State, StoredPassage
from corpus.qdrant import wire


@dataclass(frozen=True, slots=True)
class Scope:
    """The mandatory conditions of every read. Other filters can only narrow it."""

    tenant: str
    epoch: int
    levels: tuple[AccessLevel, ...]
    groups: frozenset[str]
    states: tuple[State, ...]
    chunking_version: str

    @classmethod
    def of(
        cls, caller: Caller, *, epoch: int, states: tuple[State, ...], chunking_version: str
    ) -> "Scope":
        """The scope of a verified caller. No states means that nothing may be read."""
        levels = tuple(caller.level.readable())
        return cls(caller.tenant, epoch, levels, caller.groups, states, chunking_version)

    def conditions(self) -> list[wire.Condition]:
        """Conditions that must all hold; each one needs its field to be there."""
        return [*self.rights(), *live(self.epoch), match(Key.CHUNKING, self.chunking_version)]

    def rights(self) -> list[wire.Condition]:
        """Those of the conditions that the caller's rights are, at whatever time."""
        return [
            match(Key.TENANT, self.tenant),
            match_any(Key.ACCESS, [level.label for level in self.levels]),
            match_any(Key.GROUPS, [EVERYBODY, *sorted(self.groups)]),
            match_any(Key.STATE, [state.value for state in self.states]),
        ]

    def filter(self) -> wire.Filter:
        return wire.Filter(must=self.conditions())

    def permits(self, passage: StoredPassage) -> bool:
        """Whether the passage satisfies every condition, judged without the index."""
        return (
            passage.tenant == self.tenant
            and passage.valid_from <= self.epoch < passage.valid_to
            and passage.access in self.levels
            and (not passage.groups or not self.groups.isdisjoint(passage.groups))
            and passage.state in self.states
            and passage.chunking_version == self.chunking_version
        )


def live(epoch: int) -> list[wire.Condition]:
    """Conditions of the rows that are live at an epoch."""
    return [within(Key.VALID_FROM, lte=epoch), within(Key.VALID_TO, gt=epoch)]


def match(key: str, value: str | int) -> wire.Condition:
    """The field equals the value."""
    found = wire.Match(keyword=value) if isinstance(value, str) else wire.Match(integer=value)
    return wire.Condition(field=wire.FieldCondition(key=key, match=found))


def match_any(key: str, values: Sequence[str]) -> wire.Condition:
    """The field equals one of the values; no values match nothing."""
    found = wire.Match(keywords=wire.RepeatedStrings(strings=values))
    return wire.Condition(field=wire.FieldCondition(key=key, match=found))


def within(key: str, **bounds: int) -> wire.Condition:
    """The field is a number within the bounds, which are called lt, lte, gt and gte."""
    return wire.Condition(field=wire.FieldCondition(key=key, range=wire.Range(**bounds)))


def has_id(*identities: str) -> wire.Condition:
    """The point is one of these."""
    named = [wire.PointId(uuid=identity) for identity in identities]
    return wire.Condition(has_id=wire.HasIdCondition(has_id=named))
