"""Keys that an issuer publishes: fetched over HTTP, kept, renewed, never asked for too often."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from chassis.errors import Forbidden, Unauthenticated, Unavailable
from chassis.identity import AccessLevel, Caller, development_key
from gateway import keys as published
from gateway.claims import PLAIN, Claims
from gateway.identity import PublishingIssuer, Terms
from gateway.keys import Keys
from tests.gateway.house import ALL, QUESTION, gateway, served, until
from tests.gateway.test_identity import ANA, CLAIMS, NAME, Key

ALGORITHMS = ("RS256", "ES256", "EdDSA")
RSA = rsa.generate_private_key(65_537, 2_048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def listed(key: Key, name: str | None, **more: object) -> dict[str, object]:
    """The public half as an entry of a JWK set."""
    kinds = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256"}
    kind = next((name for cls, name in kinds.items() if isinstance(key, cls)), "EdDSA")
    entry = jwt.get_algorithm_by_name(kind).to_jwk(key.public_key(), as_dict=True)
    named = {} if name is None else {"kid": name}
    return {**entry, **named, **more}


def signed(key: Key, name: str | None, algorithm: str = "RS256", **changes: object) -> str:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    headers = {} if name is None else {"kid": name}
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


@dataclass
class KeyServer:
    """Serves what the test says, and counts how often it was asked."""

    body: bytes = b""
    status: str = "200 OK"
    asked: int = 0
    silent: bool = False
    url: str = ""
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    def publish(self, *entries: object) -> None:
        self.body = json.dumps({"keys": entries}).encode()

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        if self.silent:
            await self.waiting.wait()
        head = f"HTTP/1.1 {self.status}\r\nContent-Length: {len(self.body)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + self.body)
        writer.close()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[KeyServer]:
    keys = KeyServer()
    keys.publish(listed(RSA, "one"))
    listener = await asyncio.start_server(keys.respond, "127.0.0.1", 0)
    keys.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/keys"
    yield keys
    keys.waiting.set()
    listener.close()
    await listener.wait_closed()


@dataclass
class Clock:
    now: float = 1_000

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def trusting(
    url: str, clock: Clock, claims: Claims = PLAIN, skew: float = 5
) -> AsyncIterator[PublishingIssuer]:
    terms = Terms(NAME, "sluice", ALGORITHMS, claims, skew)
    issuer = PublishingIssuer(terms, Keys(url, ALGORITHMS, clock))
    try:
        yield issuer
    finally:
        await issuer.close()


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (EC, "ES256"), (ED, "EdDSA")])
async def test_a_token_signed_with_a_published_key_is_believed(
    server: KeyServer, key: Key, algorithm: str
) -> None:
    server.publish(listed(key, "one"), listed(RSA, "other"))
    async with trusting(server.url, Clock()) as issuer:
        for _ in range(3):
            assert await issuer.caller(signed(key, "one", algorithm)) == ANA
    assert server.asked == 1


async def test_a_new_key_is_found_at_once_and_an_old_one_ends_with_the_next_set(
    server: KeyServer,
) -> None:
    clock, new = Clock(), rsa.generate_private_key(65_537, 2_048)
    async with trusting(server.url, clock) as issuer:
        assert await issuer.caller(signed(RSA, "one")) == ANA
        clock.now += published.AGAIN_AFTER
        server.publish(listed(new, "two"))
        assert await issuer.caller(signed(new, "two")) == ANA
        with pytest.raises(Unauthenticated):
            await issuer.caller(signed(RSA, "one"))
    assert server.asked == 2


async def test_names_that_nobody_knows_are_asked_for_every_few_seconds_at_most(
    server: KeyServer,
) -> None:
    clock = Clock()
    async with trusting(server.url, clock) as issuer:
        for round_ in (1, 2):
            strange = [issuer.caller(signed(RSA, f"{round_}-{number}")) for number in range(20)]
            found = await asyncio.gather(*strange, return_exceptions=True)
            assert {type(error) for error in found} == {Unauthenticated}
            assert server.asked == round_
            clock.now += published.AGAIN_AFTER
        assert await issuer.caller(signed(RSA, "one")) == ANA


async def test_the_regular_check_renews_the_keys_without_a_token_waiting(
    server: KeyServer,
) -> None:
    clock = Clock()
    async with trusting(server.url, clock) as issuer:
        (part,) = issuer.parts()
        for _ in range(3):
            await part.check()
        assert server.asked == 1
        clock.now += published.FRESH_SECONDS
        await part.check()
        assert server.asked == 2


@pytest.mark.parametrize("outage", ["500 Internal Server Error", "302 Found", "404 Not Found"])
async def test_while_the_key_server_fails_the_last_keys_hold_for_a_bounded_time(
    server: KeyServer, outage: str
) -> None:
    clock = Clock()
    async with trusting(server.url, clock) as issuer:
        await issuer.caller(signed(RSA, "one"))
        server.status = outage
        clock.now += published.KEPT_SECONDS - 1
        (part,) = issuer.parts()
        with pytest.raises(Unavailable):
            await part.check()
        assert await issuer.caller(signed(RSA, "one")) == ANA
        clock.now += 1
        with pytest.raises(Unavailable) as refused:
            await issuer.caller(signed(RSA, "one"))
        assert refused.value.reason == "KEYS_UNAVAILABLE"
        server.status = "200 OK"
        clock.now += published.AGAIN_AFTER
        assert await issuer.caller(signed(RSA, "one")) == ANA


async def test_without_a_key_server_from_the_start_tokens_cannot_be_checked() -> None:
    async with trusting("http://127.0.0.1:9/keys", Clock()) as issuer:
        with pytest.raises(Unavailable) as refused:
            await issuer.caller(signed(RSA, "one"))
        assert "127.0.0.1" not in refused.value.message


async def test_a_key_server_that_says_nothing_is_waited_for_once_and_not_for_long(
    server: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "FETCH_SECONDS", 0.2)
    server.silent = True
    async with trusting(server.url, Clock()) as issuer:
        asking = [issuer.caller(signed(RSA, "one")) for _ in range(5)]
        found = await asyncio.gather(*asking, return_exceptions=True)
    assert {type(error) for error in found} == {Unavailable}
    assert server.asked == 1


async def test_who_leaves_does_not_end_the_fetch_that_others_wait_for(server: KeyServer) -> None:
    server.silent = True
    async with trusting(server.url, Clock()) as issuer:
        first, second = (asyncio.create_task(issuer.caller(signed(RSA, "one"))) for _ in range(2))

        async def asked() -> bool:
            return server.asked == 1

        await until(asked)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        server.waiting.set()
        assert await second == ANA


BAD_SETS = [
    b"",
    b"no json",
    b"[]",
    b"null",
    b'{"keys": {}}',
    b'{"keys": []}',
    b'{"keys": [7, null, {}, {"kty": "RSA"}, {"kty": []}, {"kty": "EC", "crv": 7, "x": []}]}',
    b'{"keys": [{"kty": "RSA", "n": 1, "e": "AQAB"}, {"kty": "OKP", "alg": [], "use": "sig"}]}',
    b'{"keys": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    json.dumps({"keys": [listed(RSA, "one")], "padding": "x" * 300_000}).encode(),
    json.dumps({"keys": [listed(ED, str(number)) for number in range(101)]}).encode(),
    json.dumps({"keys": [listed(RSA, "one", use="enc")]}).encode(),
    json.dumps({"keys": [listed(RSA, "one", alg="RS512")]}).encode(),
    json.dumps({"keys": [listed(rsa.generate_private_key(65_537, 1_024), "one")]}).encode(),
    json.dumps({"keys": [{"kty": "oct", "kid": "one", "k": "c2VjcmV0"}]}).encode(),
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", BAD_SETS, ids=range(len(BAD_SETS)))
async def test_a_set_that_is_huge_weak_or_nonsense_replaces_nothing(
    server: KeyServer, body: bytes
) -> None:
    clock = Clock()
    async with trusting(server.url, clock) as issuer:
        await issuer.caller(signed(RSA, "one"))
        server.body = body
        clock.now += published.FRESH_SECONDS
        (part,) = issuer.parts()
        with pytest.raises(Unavailable):
            await part.check()
        assert await issuer.caller(signed(RSA, "one")) == ANA


@pytest.mark.parametrize("body", BAD_SETS, ids=range(len(BAD_SETS)))
def test_what_is_wrong_with_a_set_is_said_and_never_an_accident(body: bytes) -> None:
    if len(body) <= published.SET_BYTES:
        with pytest.raises(ValueError, match=r"."):
            published.usable(body, ALGORITHMS)
    else:
        assert published.usable(body, ALGORITHMS)


def confused(key: rsa.RSAPrivateKey) -> str:
    """A token whose secret is the public key that everybody can read."""
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header, body, _ = jwt.encode(CLAIMS, "x" * 32, headers={"kid": "one"}).split(".")
    tag = jwt.get_algorithm_by_name("HS256").sign(f"{header}.{body}".encode(), public)
    return f"{header}.{body}.{jwt.utils.base64url_encode(tag).decode()}"


FORGED = {
    "an algorithm that shares a secret": confused(RSA),
    "no signature": jwt.encode(CLAIMS, "", algorithm="none", headers={"kid": "one"}),
    "an algorithm that is not listed": signed(RSA, "one", "PS256"),
    "another kind of key under that name": signed(EC, "one", "ES256"),
    "another key": signed(rsa.generate_private_key(65_537, 2_048), "one"),
    "an unknown name": signed(RSA, "two"),
    "no token": "a.b.c",
    "a name that is no text": jwt.encode(CLAIMS, RSA, "RS256").replace(".", ".."),
    "endless": "a" * 9_000,
    "another audience": signed(RSA, "one", aud="billing"),
    "another issuer": signed(RSA, "one", iss="https://evil.example.org"),
    "its end": signed(RSA, "one", exp=1),
    "no end": signed(RSA, "one", exp=None),
    "its beginning": signed(RSA, "one", nbf=4_000_000_000),
    "a birth in the future": signed(RSA, "one", iat=4_000_000_000),
    "no subject": signed(RSA, "one", sub=None),
    "no tenant": signed(RSA, "one", tenant=None),
    "no level": signed(RSA, "one", level=None),
    "groups that are no list": signed(RSA, "one", groups="sre"),
}


@pytest.mark.parametrize("fault", FORGED)
async def test_a_token_is_refused_for(server: KeyServer, fault: str) -> None:
    server.publish(listed(RSA, "one"), listed(ED, "secret"))
    async with trusting(server.url, Clock()) as issuer:
        with pytest.raises(Unauthenticated):
            await issuer.caller(FORGED[fault])
        assert await issuer.caller(signed(RSA, "one")) == ANA


async def test_a_token_without_a_keys_name_needs_that_there_is_but_one(server: KeyServer) -> None:
    clock = Clock()
    async with trusting(server.url, clock) as issuer:
        assert await issuer.caller(signed(RSA, None)) == ANA
        server.publish(listed(RSA, "one"), listed(rsa.generate_private_key(65_537, 2_048), "two"))
        clock.now += published.FRESH_SECONDS
        await issuer.parts()[0].check()
        with pytest.raises(Unauthenticated):
            await issuer.caller(signed(RSA, None))


async def test_clocks_may_differ_by_what_is_set_and_no_more(server: KeyServer) -> None:
    late = signed(RSA, "one", exp=int(time.time()) - 30)
    async with trusting(server.url, Clock(), skew=60) as patient:
        assert await patient.caller(late) == ANA
    async with trusting(server.url, Clock(), skew=5) as strict:
        with pytest.raises(Unauthenticated):
            await strict.caller(late)


async def test_claims_are_read_by_their_configured_names(server: KeyServer) -> None:
    levels = {"staff": AccessLevel.TEAM, "board": AccessLevel.RESTRICTED}
    claims = Claims("https://example.org/org", "teams", "memberOf", "realm.roles", levels)
    said: dict[str, Any] = {
        "tenant": None,
        "level": None,
        "groups": None,
        "https://example.org/org": "acme",
        "memberOf": ["sre"],
        "realm": {"roles": ["operator"]},
    }
    async with trusting(server.url, Clock(), claims) as issuer:
        for teams, level in (("staff", AccessLevel.TEAM), ("staff board", max(AccessLevel))):
            caller = await issuer.caller(signed(RSA, "one", teams=teams.split(), **said))
            groups, roles = frozenset({"sre"}), frozenset({"operator"})
            assert caller == Caller("ana", "acme", level, groups, roles)
        for strange in ("visitors", ["visitors", 7], "restricted"):
            with pytest.raises(Forbidden):
                await issuer.caller(signed(RSA, "one", teams=strange, **said))


async def test_a_gateway_in_production_believes_the_published_keys(
    server: KeyServer, tmp_path: Path
) -> None:
    signing = tmp_path / "internal.pem"
    signing.write_bytes(
        development_key().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    told = {
        "ENV": "production",
        "ISSUER": NAME,
        "ISSUER_JWKS_URL": server.url,
        "ISSUER_ALGORITHMS": "RS256",
        "CLAIM_TENANT": "org.id",
        "CLAIM_LEVELS": "team=team,board=restricted",
        "INTERNAL_SIGNING_KEY": str(signing),
    }
    async with served(*ALL) as behind, gateway(behind, tmp_path / "log", told) as house:
        said: dict[str, Any] = {"tenant": None, "org": {"id": "globex"}}
        url, body = "/v1/search", {"question": QUESTION}
        answers = [
            await house.http.post(url, json=body, headers={"Authorization": f"Bearer {token}"})
            for token in (
                signed(RSA, "one", **said, level="board"),
                signed(RSA, "one", **said, level="public"),
                signed(ED, "one", "EdDSA", **said),
                signed(RSA, "one"),
            )
        ]
        (seen,) = house.retrieve.seen
    assert (seen.caller.tenant, seen.caller.level) == ("globex", AccessLevel.RESTRICTED)
    reasons = [(answer.status_code, answer.json().get("reason")) for answer in answers]
    refused = [(403, "NO_ACCESS_LEVEL"), (401, "BAD_TOKEN"), (401, "BAD_CLAIM")]
    assert reasons == [(200, None), *refused]
    challenges = [answer.headers.get("www-authenticate") for answer in answers]
    invalid = 'Bearer error="invalid_token"'
    assert challenges == [None, 'Bearer error="insufficient_scope"', invalid, invalid]
