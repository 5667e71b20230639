"""What a caller may read, as a condition inside the query and as a check of what came back."""

from dataclasses import dataclass

from qdrant_client import models

from chassis.identity import AccessLevel, Caller
from corpus.points import EVERYBODY, Key, State, StoredPassage


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

    def conditions(self) -> list[models.Condition]:
        """Conditions that must all hold; each one needs its field to be there."""
        return [*self.rights(), *live(self.epoch), match(Key.CHUNKING, self.chunking_version)]

    def rights(self) -> list[models.Condition]:
        """Those of the conditions that the caller's rights are, at whatever time."""
        return [
            match(Key.TENANT, self.tenant),
            match_any(Key.ACCESS, [level.label for level in self.levels]),
            match_any(Key.GROUPS, [EVERYBODY, *sorted(self.groups)]),
            match_any(Key.STATE, [state.value for state in self.states]),
        ]

    def filter(self) -> models.Filter:
        return models.Filter(must=self.conditions())

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


def live(epoch: int) -> list[models.Condition]:
    """Conditions of the rows that are live at an epoch."""
    return [
        models.FieldCondition(key=Key.VALID_FROM, range=models.Range(lte=epoch)),
        models.FieldCondition(key=Key.VALID_TO, range=models.Range(gt=epoch)),
    ]


def match(key: str, value: str | int) -> models.FieldCondition:
    """The field equals the value."""
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def match_any(key: str, values: list[str]) -> models.FieldCondition:
    """The field equals one of the values; no values match nothing."""
    return models.FieldCondition(key=key, match=models.MatchAny(any=values))
