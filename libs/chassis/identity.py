"""Who is asking. Inside the suite that is a short-lived token signed by the gateway.

Tokens are JWTs signed with Ed25519: the gateway holds the private key, a stage only the public
one, so no stage can mint rights. A token names one stage as its audience.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from chassis.errors import Unauthenticated

ISSUER = "sluice-gateway"
LIFETIME = 60  # seconds; longer than any hop needs to begin, short enough to be worthless later
LEEWAY = 5  # seconds of clock difference between two machines
# Signing and checking take as long as the rest of a hop: a token is used again within this many
# seconds, and what was checked is remembered.
REUSED = 20
REMEMBERED = 1_024

# Known to everybody, hence refused unless SLUICE_ENV=development.
_DEVELOPMENT_SEED = b"sluice development signing key 1"


class AccessLevel(IntEnum):
    """Each level may read itself and every lower one. Numbers are the wire's."""

    PUBLIC = 1
    TEAM = 2
    RESTRICTED = 3

    @property
    def label(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, label: str) -> "AccessLevel":
        """The level named by its lower-case label. Raises ValueError that lists the labels."""
        for level in cls:
            if level.label == label:
                return level
        allowed = ", ".join(level.label for level in cls)
        raise ValueError(f"{label!r} is not an access level; allowed: {allowed}")

    def readable(self) -> list["AccessLevel"]:
        """Every level that a reader of this level may read."""
        return [level for level in AccessLevel if level <= self]


@dataclass(frozen=True, slots=True)
class Caller:
    """A verified identity. `roles` open routes, `level` and `groups` open documents."""

    subject: str
    tenant: str
    level: AccessLevel
    groups: frozenset[str] = field(default_factory=frozenset)
    roles: frozenset[str] = field(default_factory=frozenset)


def claims_of(caller: Caller) -> dict[str, object]:
    """JWT claims that carry the caller."""
    return {
        "sub": caller.subject,
        "tenant": caller.tenant,
        "level": caller.level.label,
        "groups": sorted(caller.groups),
        "roles": sorted(caller.roles),
    }


def caller_of(claims: dict[str, object]) -> Caller:
    """The caller in verified claims. Raises Unauthenticated naming the claim that is missing."""
    subject, tenant, level = (_text_claim(claims, name) for name in ("sub", "tenant", "level"))
    try:
        parsed = AccessLevel.parse(level)
    except ValueError as error:
        raise Unauthenticated(f"claim level: {error}") from error
    groups, roles = (_list_claim(claims, name) for name in ("groups", "roles"))
    return Caller(subject, tenant, parsed, groups, roles)


def _text_claim(claims: dict[str, object], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise Unauthenticated(f"the token has no claim {name}")
    return value


def _list_claim(claims: dict[str, object], name: str) -> frozenset[str]:
    value = claims.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unauthenticated(f"claim {name} is not a list of strings")
    return frozenset(value)


class Minter:
    """Signs internal tokens. Only the gateway, the job worker and development tools hold one."""

    def __init__(self, key: Ed25519PrivateKey, *, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock
        self._signed = lru_cache(REMEMBERED)(self._sign)

    def mint(self, caller: Caller, stage: str) -> str:
        """A token for one stage, valid for LIFETIME seconds from now, or up to REUSED less."""
        return self._signed(caller, stage, int(self._clock()) // REUSED)

    def _sign(self, caller: Caller, stage: str, _period: int) -> str:
        now = int(self._clock())
        envelope = {"iss": ISSUER, "aud": stage, "iat": now, "exp": now + LIFETIME}
        return jwt.encode({**claims_of(caller), **envelope}, self._key, algorithm="EdDSA")


class Verifier:
    """Checks internal tokens for one stage."""

    def __init__(
        self, key: Ed25519PublicKey, stage: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._key = key
        self._stage = stage
        self._clock = clock
        self._checked = lru_cache(REMEMBERED)(self._check)

    def verify(self, token: str) -> Caller:
        """The caller. Raises Unauthenticated without saying which check failed beyond its kind."""
        caller, expires = self._checked(token)
        if self._clock() >= expires + LEEWAY:
            raise _expired()
        return caller

    def _check(self, token: str) -> tuple[Caller, int]:
        """The caller, and when the token expires."""
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=["EdDSA"],
                audience=self._stage,
                issuer=ISSUER,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "aud", "iss", "sub"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise _expired() from error
        except jwt.InvalidAudienceError as error:
            raise Unauthenticated(
                f"the token is not for {self._stage}", reason="WRONG_AUDIENCE"
            ) from error
        except (jwt.InvalidTokenError, RecursionError, OverflowError) as error:
            raise Unauthenticated("the token does not hold", reason="BAD_TOKEN") from error
        return caller_of(claims), int(claims["exp"])


def _expired() -> Unauthenticated:
    return Unauthenticated("the token has expired", reason="TOKEN_EXPIRED")


def development_key() -> Ed25519PrivateKey:
    """The key pair that every development process shares."""
    return Ed25519PrivateKey.from_private_bytes(_DEVELOPMENT_SEED)


def signing_key(path: Path | None) -> Ed25519PrivateKey:
    """The private key in a PEM file, or the development key without one. Raises ValueError."""
    if path is None:
        return development_key()
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} holds no Ed25519 private key")  # noqa: TRY004 - a setting's value
    return key


def verifying_key(path: Path | None) -> Ed25519PublicKey:
    """The public key in a PEM file, or the development key without one. Raises ValueError."""
    if path is None:
        return development_key().public_key()
    key = serialization.load_pem_public_key(path.read_bytes())
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{path} holds no Ed25519 public key")  # noqa: TRY004 - a setting's value
    return key


_current: ContextVar[Caller | None] = ContextVar("caller", default=None)


def current() -> Caller:
    """The caller of the request being served. Raises Unauthenticated outside one."""
    caller = _current.get()
    if caller is None:
        raise Unauthenticated("no caller: this runs outside a request")
    return caller


def enter(caller: Caller) -> None:
    """Set the caller of the running task's request."""
    _current.set(caller)
