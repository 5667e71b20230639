"""Which claims of a verified token say who the caller is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chassis.errors import Forbidden, Unauthenticated
from chassis.identity import AccessLevel, Caller

LABELS: Mapping[str, AccessLevel] = {level.label: level for level in AccessLevel}


@dataclass(frozen=True, slots=True)
class Claims:
    """Names of the claims, and the level that each value of the level's claim stands for.

    A name leads into nested claims by its dots, where there is no claim of the whole name.
    """

    tenant: str = "tenant"
    level: str = "level"
    groups: str = "groups"
    roles: str = "roles"
    levels: Mapping[str, AccessLevel] = field(default_factory=lambda: LABELS)

    def caller(self, claims: Mapping[str, object]) -> Caller:
        """Raises Unauthenticated that names the claim, and Forbidden without an access level."""
        return Caller(
            _text(claims, "sub"),
            _text(claims, self.tenant),
            self._level_of(claims),
            _names(claims, self.groups),
            _names(claims, self.roles),
        )

    def _level_of(self, claims: Mapping[str, object]) -> AccessLevel:
        """The highest that one of the claim's values stands for."""
        found = _found(claims, self.level)
        values = found if isinstance(found, list) else [_text(claims, self.level)]
        levels = [self.levels[value] for value in values if _is_key(value, self.levels)]
        if not levels:
            raise Forbidden(
                f"no access level belongs to what the token says in its claim {self.level}",
                reason="NO_ACCESS_LEVEL",
            )
        return max(levels)


PLAIN = Claims()


def _is_key(value: object, levels: Mapping[str, AccessLevel]) -> bool:
    return isinstance(value, str) and value in levels


def _found(claims: Mapping[str, object], name: str) -> object:
    if name in claims:
        return claims[name]
    value: object = claims
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(claims: Mapping[str, object], name: str) -> str:
    value = _found(claims, name)
    if not isinstance(value, str) or not value:
        raise Unauthenticated(f"the token has no claim {name}", reason="BAD_CLAIM")
    return value


def _names(claims: Mapping[str, object], name: str) -> frozenset[str]:
    value = _found(claims, name)
    if value is None:
        return frozenset()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unauthenticated(f"claim {name} is not a list of strings", reason="BAD_CLAIM")
    return frozenset(value)
