"""Who knocks. The caller's token is a JWT of an outside issuer; it ends at the gateway."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from chassis.errors import Unauthenticated
from chassis.identity import LEEWAY, AccessLevel, Caller, caller_of, claims_of

AUDIENCE = "sluice"
DEVELOPMENT_ISSUER = "sluice-development"
TOKEN_CHARACTERS = 8_192
RSA_BITS = 2_048

# Known to everybody, hence refused unless SLUICE_ENV=development.
_DEVELOPMENT_SECRET = "sluice development tokens, known to everybody"  # noqa: S105 - no secret

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whose tokens are believed: the key, what it may sign with, and the claims it must write."""

    name: str
    audience: str
    key: PublicKey | str
    algorithms: tuple[str, ...]

    def verify(self, token: str) -> Caller:
        """The caller. Raises Unauthenticated that says no more than the kind of the fault."""
        if len(token) > TOKEN_CHARACTERS:
            raise Unauthenticated("the token is too long", reason="BAD_TOKEN")
        try:
            claims = jwt.decode(
                token,
                self.key,
                algorithms=list(self.algorithms),
                audience=self.audience,
                issuer=self.name,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise Unauthenticated("the token has expired", reason="TOKEN_EXPIRED") from error
        # Nested brackets in a header and infinite times pass the library's own checks.
        except (jwt.InvalidTokenError, RecursionError, OverflowError) as error:
            raise Unauthenticated("the token does not hold", reason="BAD_TOKEN") from error
        return caller_of(claims)


def issuer(path: Path, name: str, audience: str) -> Issuer:
    """The issuer whose public key is in a PEM file. Raises ValueError that says what is wrong.

    The kind of key fixes the algorithm: a token's header chooses nothing.
    """
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} holds no PEM public key") from error
    match key:
        case RSAPublicKey() if key.key_size >= RSA_BITS:
            return Issuer(name, audience, key, ("RS256", "PS256"))
        case EllipticCurvePublicKey() if key.curve.name in _CURVES:
            return Issuer(name, audience, key, (_CURVES[key.curve.name],))
        case Ed25519PublicKey():
            return Issuer(name, audience, key, ("EdDSA",))
    raise ValueError(
        f"{path} holds neither an RSA key of {RSA_BITS} bits or more,"
        " nor one on P-256, P-384 or P-521, nor an Ed25519 key"
    )


def development_issuer(audience: str = AUDIENCE) -> Issuer:
    """Believes tokens that anybody can make: for SLUICE_ENV=development only."""
    return Issuer(DEVELOPMENT_ISSUER, audience, _DEVELOPMENT_SECRET, ("HS256",))


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
