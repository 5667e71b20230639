"""Whose tokens are believed, and with which keys."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from chassis.errors import Unauthenticated
from chassis.identity import AccessLevel, Caller
from gateway.identity import Issuer, Terms, development_issuer, development_token, issuer

NAME = "https://login.example.org"
CLAIMS: dict[str, Any] = {
    "iss": NAME,
    "aud": "sluice",
    "exp": 4_000_000_000,
    "sub": "ana",
    "tenant": "acme",
    "level": "team",
    "groups": ["sre"],
}
ANA = Caller("ana", "acme", AccessLevel.TEAM, frozenset({"sre"}), frozenset())

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
KINDS: list[tuple[Callable[[], Key], str]] = [
    (lambda: rsa.generate_private_key(65_537, 2_048), "RS256"),
    (lambda: rsa.generate_private_key(65_537, 2_048), "PS256"),
    (lambda: ec.generate_private_key(ec.SECP256R1()), "ES256"),
    (lambda: ec.generate_private_key(ec.SECP384R1()), "ES384"),
    (ed25519.Ed25519PrivateKey.generate, "EdDSA"),
]


def pem(key: Key | dsa.DSAPrivateKey, folder: Path) -> Path:
    path = folder / "issuer.pub.pem"
    path.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return path


@pytest.mark.parametrize(("generate", "algorithm"), KINDS)
def test_a_token_signed_with_the_issuers_key_is_believed(
    generate: Callable[[], Key], algorithm: str, tmp_path: Path
) -> None:
    key = generate()
    trusted = issuer(pem(key, tmp_path), NAME, "sluice")
    assert trusted.verify(jwt.encode(CLAIMS, key, algorithm=algorithm)) == ANA


@pytest.mark.parametrize(("generate", "algorithm"), KINDS)
def test_another_key_of_the_same_kind_is_not(
    generate: Callable[[], Key], algorithm: str, tmp_path: Path
) -> None:
    trusted = issuer(pem(generate(), tmp_path), NAME, "sluice")
    with pytest.raises(Unauthenticated):
        trusted.verify(jwt.encode(CLAIMS, generate(), algorithm=algorithm))


def test_the_tokens_header_chooses_no_algorithm(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65_537, 2_048)
    path = pem(key, tmp_path)
    trusted = issuer(path, NAME, "sluice")
    mac = jwt.get_algorithm_by_name("HS256")
    unsigned = jwt.encode(CLAIMS, "", algorithm="none")
    # The public key as a shared secret: the oldest trick against such checks.
    header, body, _ = jwt.encode(CLAIMS, "x" * 32, algorithm="HS256").split(".")
    tag = mac.sign(f"{header}.{body}".encode(), path.read_bytes())
    confused = f"{header}.{body}.{jwt.utils.base64url_encode(tag).decode()}"
    for forged in (unsigned, confused, development_token("ana", "acme", AccessLevel.RESTRICTED)):
        with pytest.raises(Unauthenticated):
            trusted.verify(forged)


@pytest.mark.parametrize(
    "change", [{"iss": "other"}, {"aud": "other"}, {"exp": 1}, {"nbf": 4_000_000_000}, {"sub": ""}]
)
def test_every_claim_that_limits_a_token_is_checked(
    change: dict[str, object], tmp_path: Path
) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    trusted = issuer(pem(key, tmp_path), NAME, "sluice")
    with pytest.raises(Unauthenticated):
        trusted.verify(jwt.encode(CLAIMS | change, key, algorithm="EdDSA"))


@pytest.mark.parametrize(
    "generate",
    [
        lambda: rsa.generate_private_key(65_537, 1_024),
        lambda: ec.generate_private_key(ec.SECP256K1()),
        lambda: dsa.generate_private_key(2_048),
    ],
)
def test_a_weak_or_unknown_kind_of_key_is_refused(
    generate: Callable[[], Key | dsa.DSAPrivateKey], tmp_path: Path
) -> None:
    path = pem(generate(), tmp_path)
    with pytest.raises(ValueError, match=r"issuer\.pub\.pem holds"):
        issuer(path, NAME, "sluice")


def test_a_file_that_holds_no_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere\.pem cannot be read: No such file"):
        issuer(tmp_path / "nowhere.pem", NAME, "sluice")
    (tmp_path / "empty.pem").write_text("no key")
    with pytest.raises(ValueError, match=r"empty\.pem holds no PEM public key"):
        issuer(tmp_path / "empty.pem", NAME, "sluice")


def test_a_development_token_carries_all_that_it_was_made_with() -> None:
    token = development_token(
        "bo", "acme", AccessLevel.RESTRICTED, groups=["sre"], roles=["editor"], lifetime=60
    )
    assert development_issuer().verify(token) == Caller(
        "bo", "acme", AccessLevel.RESTRICTED, frozenset({"sre"}), frozenset({"editor"})
    )


def test_a_development_token_ends() -> None:
    token = development_token("bo", "acme", AccessLevel.TEAM, lifetime=-60)
    with pytest.raises(Unauthenticated) as refused:
        development_issuer().verify(token)
    assert refused.value.reason == "TOKEN_EXPIRED"


def test_a_token_that_was_believed_ends_as_well() -> None:
    key, ends = ed25519.Ed25519PrivateKey.generate(), CLAIMS["exp"]
    clock = iter((ends - 60, ends + 4.9, ends + 5))
    terms = Terms(NAME, "sluice", ("EdDSA",), skew=5)
    trusted = Issuer(terms, key.public_key(), clock=lambda: next(clock))
    token = jwt.encode(CLAIMS, key, algorithm="EdDSA")
    assert [trusted.verify(token) for _ in range(2)] == [ANA, ANA]
    with pytest.raises(Unauthenticated) as refused:
        trusted.verify(token)
    assert refused.value.reason == "TOKEN_EXPIRED"
