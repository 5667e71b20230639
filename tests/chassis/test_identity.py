"""Internal tokens: what is signed, what is refused."""

import base64
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from chassis.errors import Unauthenticated
from chassis.identity import (
    ISSUER,
    LEEWAY,
    LIFETIME,
    REUSED,
    AccessLevel,
    Caller,
    Minter,
    Verifier,
    claims_of,
    development_key,
    signing_key,
    verifying_key,
)

CALLER = Caller("ana", "acme", AccessLevel.TEAM, frozenset({"sre"}), frozenset({"ingest"}))
KEY = Ed25519PrivateKey.generate()
VERIFIER = Verifier(KEY.public_key(), "retrieve")

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=40)


def token(**claims: object) -> str:
    now = int(time.time())
    whole = {**claims_of(CALLER), "iss": ISSUER, "aud": "retrieve", "iat": now, "exp": now + 60}
    kept = {name: value for name, value in {**whole, **claims}.items() if value is not None}
    return jwt.encode(kept, KEY, algorithm="EdDSA")


@given(words, words, st.sampled_from(AccessLevel), st.frozensets(words, max_size=5))
def test_a_caller_survives_the_token(
    subject: str, tenant: str, level: AccessLevel, groups: frozenset[str]
) -> None:
    caller = Caller(subject, tenant, level, groups, frozenset())
    assert VERIFIER.verify(Minter(KEY).mint(caller, "retrieve")) == caller


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"iss": "somebody"},
        {"aud": "generate"},
        {"tenant": None},
        {"tenant": ""},
        {"tenant": 7},
        {"level": "root"},
        {"groups": "sre"},
        {"groups": [1]},
    ],
    ids=str,
)
def test_a_token_with_a_wrong_claim_is_refused(claims: dict[str, object]) -> None:
    assert VERIFIER.verify(token()) == CALLER
    with pytest.raises(Unauthenticated):
        VERIFIER.verify(token(**claims))


def test_a_token_that_was_accepted_before_is_refused_once_it_has_expired() -> None:
    now = time.time()
    verifier = Verifier(KEY.public_key(), "retrieve", clock=lambda: now)
    accepted = token()
    assert verifier.verify(accepted) == CALLER
    now += LIFETIME + LEEWAY + 1
    with pytest.raises(Unauthenticated) as refused:
        verifier.verify(accepted)
    assert refused.value.reason == "TOKEN_EXPIRED"


def test_a_token_is_used_again_only_for_its_caller_and_stage_and_while_it_is_fresh() -> None:
    now = time.time() // REUSED * REUSED
    minter = Minter(KEY, clock=lambda: now)
    first = minter.mint(CALLER, "retrieve")
    other = Caller("ben", CALLER.tenant, CALLER.level)
    assert minter.mint(CALLER, "retrieve") == first
    assert minter.mint(CALLER, "generate") != first
    assert VERIFIER.verify(minter.mint(other, "retrieve")) == other
    now += REUSED
    renewed = minter.mint(CALLER, "retrieve")
    expiries = [
        jwt.decode(one, options={"verify_signature": False})["exp"] for one in (first, renewed)
    ]
    assert expiries == [now - REUSED + LIFETIME, now + LIFETIME]


def test_another_key_or_algorithm_is_refused() -> None:
    now = int(time.time())
    claims = {**claims_of(CALLER), "iss": ISSUER, "aud": "retrieve", "iat": now, "exp": now + 60}
    public = KEY.public_key().public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    for forged in (
        jwt.encode(claims, development_key(), algorithm="EdDSA"),
        jwt.encode(claims, public, algorithm="HS256"),
        jwt.encode(claims, "", algorithm="none"),
    ):
        with pytest.raises(Unauthenticated):
            VERIFIER.verify(forged)


def test_a_hostile_token_is_refused_like_any_other() -> None:
    nested = base64.urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=")
    for hostile in (f"{nested}.{nested}.", token(iat=10**400), "\x00", "..."):
        with pytest.raises(Unauthenticated):
            VERIFIER.verify(hostile)


def test_keys_come_from_pem_files_of_the_right_kind(tmp_path: Path) -> None:
    private, public = tmp_path / "key.pem", tmp_path / "key.pub.pem"
    private.write_bytes(
        KEY.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        KEY.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    signed = Minter(signing_key(private)).mint(CALLER, "ingest")
    assert Verifier(verifying_key(public), "ingest").verify(signed) == CALLER
    with pytest.raises(ValueError, match="PUBLIC KEY"):
        verifying_key(private)


def test_levels_read_themselves_and_lower_ones() -> None:
    assert AccessLevel.PUBLIC.readable() == [AccessLevel.PUBLIC]
    assert AccessLevel.RESTRICTED.readable() == list(AccessLevel)
