"""A key, or tokens of the process's own identity, which the provider sees in the header."""

import asyncio
import sys
import time
from dataclasses import dataclass, field

import pytest
import structlog

from capacity import Workload
from providers import credentials, failures
from providers.credentials import AHEAD, SCOPE, Tokens
from providers.embeddings import EmbeddingClient
from providers.endpoint import Credentials
from tests.providers.asking import Make, ask
from tests.scripted_provider import replies
from tests.scripted_provider.pool import Pool
from tests.scripted_provider.server import ScriptedProvider

HOUR = 3_600


@dataclass
class Given:
    token: str
    expires_on: int


@dataclass
class Person:
    """An identity that gives these tokens, one a time, and says so."""

    tokens: list[Given]
    asked: list[str] = field(default_factory=list)
    closed: bool = False

    async def get_token(self, *scopes: str) -> Given:
        self.asked.extend(scopes)
        await asyncio.sleep(0)
        if not self.tokens:
            raise ConnectionError("secret-detail")
        return self.tokens.pop(0)

    async def close(self) -> None:
        self.closed = True


def lasting(seconds: float, *names: str) -> list[Given]:
    return [Given(name, round(time.time() + seconds)) for name in names]


def sent(provider: ScriptedProvider) -> list[str | None]:
    return [exchange.headers.get("authorization") for exchange in provider.arrivals]


async def test_a_token_is_sent_and_kept_while_it_lasts(
    make: Make, provider: ScriptedProvider
) -> None:
    provider.script(*[replies.answer("one")] * 2)
    person = Person(lasting(HOUR, "first", "second"))
    client = make(Tokens(person))
    await ask(client)
    await ask(client)
    assert sent(provider) == ["Bearer first"] * 2
    assert person.asked == [SCOPE]
    await client.close()
    assert person.closed


async def test_a_token_near_its_end_is_replaced(make: Make, provider: ScriptedProvider) -> None:
    provider.script(*[replies.answer("one")] * 3)
    person = Person([*lasting(AHEAD - 1, "first"), *lasting(HOUR, "second")])
    client = make(Tokens(person))
    for _ in range(3):
        await ask(client)
    assert sent(provider) == ["Bearer first", "Bearer second", "Bearer second"]


async def test_calls_at_once_ask_for_one_token(make: Make, provider: ScriptedProvider) -> None:
    provider.script(*[replies.answer("one")] * 2)
    person = Person(lasting(HOUR, "first", "second"))
    client = make(Tokens(person))
    await asyncio.gather(ask(client), ask(client))
    assert person.asked == [SCOPE]


async def test_who_gets_no_token_sends_nothing_and_pays_nothing(
    make: Make, provider: ScriptedProvider, pool: Pool
) -> None:
    with structlog.testing.capture_logs() as events, pytest.raises(failures.NoToken) as caught:
        await ask(make(Tokens(Person([]))))
    assert caught.value.reason == "PROVIDER_CREDENTIALS"
    assert "secret-detail" not in caught.value.message
    assert [event["event"] for event in events] == ["no_token"]
    assert provider.calls == 0
    assert (await pool.places_taken(), await pool.tokens_spent()) == (0, 0)


async def test_a_refused_token_is_printed_nowhere(
    make: Make, provider: ScriptedProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.script(replies.refused(401))
    tokens = Tokens(Person(lasting(HOUR, "token-in-secret")))
    client = make(tokens)
    with pytest.raises(failures.Misconfigured) as caught:
        await ask(client)
    told = f"{caught.value!r} {tokens!r} {client!r} {capsys.readouterr()}"
    assert "PROVIDER_CREDENTIALS" in told
    assert "token-in-secret" not in told


async def test_embeddings_prove_themselves_alike(provider: ScriptedProvider, pool: Pool) -> None:
    provider.script(replies.vectors([[1.0, 0.0]]))
    person = Person(lasting(HOUR, "first"))
    client = EmbeddingClient(
        base_url=provider.base_url,
        api_key=Tokens(person),
        model="model-e",
        dimensions=2,
        bucket=pool.bucket,
        attempt_timeout=5,
    )
    await client.embed(["one"], [3], Workload.BATCH)
    await client.close()
    assert sent(provider) == ["Bearer first"]
    assert person.closed


@pytest.mark.parametrize(
    ("chosen", "key", "header"),
    [
        ("key", "sk-1", "Bearer sk-1"),
        ("key", "", "Bearer unused"),
        ("none", "sk-1", "Bearer unused"),
    ],
)
async def test_a_key_is_sent_where_one_is_to_be(
    make: Make, provider: ScriptedProvider, chosen: Credentials, key: str, header: str
) -> None:
    provider.script(replies.answer("one"))
    await ask(make(credentials.of(chosen, key)))
    assert sent(provider) == [header]


def test_what_entra_needs_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity.aio", None)
    with pytest.raises(failures.Misconfigured, match=r"pip install 'sluice\[azure\]'"):
        credentials.of("entra", "")


async def test_nothing_is_taken_from_the_environment(
    make: Make, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = {
        "OPENAI_API_KEY": "foreign",
        "OPENAI_ADMIN_KEY": "foreign",
        "OPENAI_ORG_ID": "foreign",
        "OPENAI_PROJECT_ID": "foreign",
        "OPENAI_BASE_URL": "http://foreign.invalid",
        "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer foreign\nX-Other: foreign",
    }
    for variable, text in foreign.items():
        monkeypatch.setenv(variable, text)
    provider.script(replies.answer("one"))
    await ask(make(key="sk-1"))
    assert sent(provider) == ["Bearer sk-1"]
    assert "foreign" not in str(provider.arrivals[0].headers)


async def test_nothing_that_the_provider_repeats_is_logged(
    make: Make, provider: ScriptedProvider
) -> None:
    message = "no such key: sk-of-ours, to ask When is the window?"
    error = {"message": message, "code": "invalid_api_key", "type": message, "param": message}
    provider.script(replies.document({"error": error}, 401))
    with structlog.testing.capture_logs() as events, pytest.raises(failures.Misconfigured):
        await ask(make(key="sk-of-ours"))
    (event,) = [event for event in events if event["event"] == "provider_failed"]
    assert (event["status"], event["words"]) == (401, ["invalid_api_key"])
    assert "sk-of-ours" not in str(events)
    assert "window" not in str(events)
