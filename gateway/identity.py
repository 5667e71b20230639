"""Who knocks. The caller's token is a JWT of an outside issuer; it ends at the gateway."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from chassis.errors import Unauthenticated
from chassis.health import Dependency
from chassis.identity import LEEWAY, REMEMBERED, AccessLevel, Caller, claims_of
from gateway.claims import PLAIN, Claims
from gateway.keys import RSA_BITS, Keys

AUDIENCE = "sluice"
DEVELOPMENT_ISSUER = "sluice-development"
TOKEN_CHARACTERS = 8_192

# Known to everybody, hence refused unless SLUICE_ENV=development.
_DEVELOPMENT_SECRET = "sluice development tokens, known to everybody"  # noqa: S105 - no secret

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


class Trusted(Protocol):
    """An issuer whose tokens are believed."""

    async def caller(self, token: str) -> Caller:
        """The caller. Raises Unauthenticated, Forbidden without an access level, Unavailable."""

    def parts(self) -> Sequence[Dependency]:
        """What is asked for keys."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Terms:
    """What a token has to say. `skew` in seconds is allowed between two clocks."""

    name: str
    audience: str
    algorithms: tuple[str, ...]
    claims: Claims = field(default_factory=Claims)
    skew: float = LEEWAY

    def read(self, token: str, key: PublicKey | jwt.PyJWK | str) -> tuple[Caller, float]:
        """The caller, and the second in which the token is no longer believed.

        Raises Unauthenticated that says no more than the kind of the fault.
        """
        check_length(token)
        with _refusing():
            claims = jwt.decode(
                token,
                key,
                algorithms=list(self.algorithms),
                audience=self.audience,
                issuer=self.name,
                leeway=self.skew,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        return self.claims.caller(claims), float(claims["exp"]) + self.skew


def check_length(token: str) -> None:
    if len(token) > TOKEN_CHARACTERS:
        raise Unauthenticated("the token is too long", reason="BAD_TOKEN")


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except jwt.ExpiredSignatureError as error:
        raise _expired() from error
    # Nested brackets in a header and infinite times pass the library's own checks.
    except (jwt.InvalidTokenError, RecursionError, OverflowError) as error:
        raise Unauthenticated("the token does not hold", reason="BAD_TOKEN") from error


def _expired() -> Unauthenticated:
    return Unauthenticated("the token has expired", reason="TOKEN_EXPIRED")


def _unless_over(read: tuple[Caller, float], now: float) -> Caller:
    caller, ends = read
    if now >= ends:
        raise _expired()
    return caller


class Issuer:
    """One whose key is known from the start: what is signed is checked once, its end always."""

    def __init__(
        self, terms: Terms, key: PublicKey | str, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._read = lru_cache(REMEMBERED)(partial(terms.read, key=key))
        self._clock = clock

    def verify(self, token: str) -> Caller:
        """The caller. Raises Unauthenticated, or Forbidden without an access level."""
        return _unless_over(self._read(token), self._clock())

    async def caller(self, token: str) -> Caller:
        return self.verify(token)

    def parts(self) -> Sequence[Dependency]:
        return ()

    async def close(self) -> None:
        """There is nothing to close."""


class PublishingIssuer:
    """One whose keys are published, and change. A key that is fetched again checks anew."""

    def __init__(self, terms: Terms, keys: Keys, *, clock: Callable[[], float] = time.time) -> None:
        self._algorithms = terms.algorithms
        self._keys = keys
        self._read = lru_cache(REMEMBERED)(terms.read)
        self._clock = clock

    async def caller(self, token: str) -> Caller:
        check_length(token)
        with _refusing():
            header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in self._algorithms:
            raise Unauthenticated("the token does not hold", reason="BAD_TOKEN")
        key = await self._keys.key(header.get("kid"), algorithm)
        return _unless_over(self._read(token, key), self._clock())

    def parts(self) -> Sequence[Dependency]:
        return (Dependency("issuer", self._keys.check),)

    async def close(self) -> None:
        await self._keys.close()


def issuer(
    path: Path,
    name: str,
    audience: str,
    claims: Claims = PLAIN,
    skew: float = LEEWAY,
) -> Issuer:
    """The issuer whose public key is in a PEM file. Raises ValueError that says what is wrong.

    The kind of key fixes the algorithm: a token's header chooses nothing.
    """
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} holds no PEM public key") from error

    def terms(algorithms: tuple[str, ...]) -> Terms:
        return Terms(name, audience, algorithms, claims, skew)

    match key:
        case RSAPublicKey() if key.key_size >= RSA_BITS:
            return Issuer(terms(("RS256", "PS256")), key)
        case EllipticCurvePublicKey() if key.curve.name in _CURVES:
            return Issuer(terms((_CURVES[key.curve.name],)), key)
        case Ed25519PublicKey():
            return Issuer(terms(("EdDSA",)), key)
    raise ValueError(
        f"{path} holds neither an RSA key of {RSA_BITS} bits or more,"
        " nor one on P-256, P-384 or P-521, nor an Ed25519 key"
    )


def development_issuer(audience: str = AUDIENCE) -> Issuer:
    """Believes tokens that anybody can make: for SLUICE_ENV=development only."""
    return Issuer(Terms(DEVELOPMENT_ISSUER, audience, ("HS256",)), _DEVELOPMENT_SECRET)


def development_token(  # noqa: PLR0913 - a claim each
    subject: str,
    tenant: str,
    level: AccessLevel,
    *,
    groups: Iterable[str] = (),
    roles: Iterable[str] = (),
    lifetime: int = 3_600,
    audience: str = AUDIENCE,
) -> str:
    """A token that a gateway with SLUICE_ENV=development believes for `lifetime` seconds."""
    now = int(time.time())
    caller = Caller(subject, tenant, level, frozenset(groups), frozenset(roles))
    envelope = {"iss": DEVELOPMENT_ISSUER, "aud": audience, "iat": now, "exp": now + lifetime}
    return jwt.encode({**claims_of(caller), **envelope}, _DEVELOPMENT_SECRET, algorithm="HS256")
