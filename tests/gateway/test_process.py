"""The life of the gateway's process: how it starts, what stops it from starting, how it ends."""

import asyncio
import json
import os
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import pytest
from annotated_types import Le
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis import serve
from chassis.settings import load
from gateway.settings import GatewaySettings
from tests.capacity.server import Server
from tests.gateway.house import (
    ALL,
    QUESTION,
    Stage,
    bearer,
    find_port,
    gateway,
    hanging,
    served,
    until,
)


async def ended(**env: str) -> tuple[int, str]:
    """Exit code and words of a gateway that should not start."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway",
        env={**os.environ, **{f"SLUICE_{name}": value for name, value in env.items()}},
        stderr=PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 20)
    return process.returncode or 0, said.decode()


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """Production settings with keys that hold."""
    key = Ed25519PrivateKey.generate()
    issuer, signing = tmp_path / "issuer.pub.pem", tmp_path / "internal.pem"
    issuer.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    signing.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return {
        "ENV": "production",
        "ISSUER": "https://login.example.org",
        "ISSUER_KEY": str(issuer),
        "INTERNAL_SIGNING_KEY": str(signing),
    }


@pytest.fixture
def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[dict[str, str]], str]:
    """What a start with these settings says before it exits with 2."""

    def start(settings: dict[str, str]) -> str:
        for name, value in settings.items():
            monkeypatch.setenv(f"SLUICE_{name}", value)
        with pytest.raises(SystemExit) as stopped:
            load(GatewaySettings)
        assert stopped.value.code == 2
        return capsys.readouterr().err

    return start


EXAMPLES = {
    "ISSUER": "https://login.example.org",
    "ISSUER_KEY": "/etc/sluice/issuer.pub.pem",
    "INTERNAL_SIGNING_KEY": "/etc/sluice/internal.pem",
}


@pytest.mark.parametrize(("name", "example"), EXAMPLES.items())
def test_a_missing_key_source_stops_the_start_and_is_named_with_an_example(
    keys: dict[str, str], refused: Callable[[dict[str, str]], str], name: str, example: str
) -> None:
    del keys[name]
    said = refused(keys)
    assert said.startswith(f"SLUICE_{name} is missing: set it to ")
    assert example in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ISSUER_KEY", "/nowhere.pem"),
        ("ISSUER_JWKS_URL", "http://login.example.org/keys"),
        ("ISSUER_JWKS_URL", "https:///keys"),
        ("ISSUER_ALGORITHMS", "RS256,HS256"),
        ("ISSUER_ALGORITHMS", "RS256,none"),
        ("ISSUER_CLOCK_SKEW", "61"),
        ("CLAIM_LEVELS", "staff=root"),
        ("CLAIM_LEVELS", ""),
        ("INTERNAL_SIGNING_KEY", "/nowhere.pem"),
        ("MAX_IN_FLIGHT", "0"),
        ("ANSWER_DEADLINE", "soon"),
        ("HTTP_PORT", "70000"),
        ("AUDIENCE", ""),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named_with_an_example(
    keys: dict[str, str], refused: Callable[[dict[str, str]], str], name: str, value: str
) -> None:
    said = refused(keys | {name: value})
    assert said.startswith(f"SLUICE_{name}: ")
    assert f"; for example SLUICE_{name}=" in said
    assert said.count("\n") == 1


def test_what_only_callers_of_a_provider_need_is_neither_demanded_nor_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"ENV": "development", "ANSWER_MODE": "generated", "ANSWER_IN_FLIGHT": "3"}
    secrets = {"ANSWER_API_KEY": "sk-answers", "EMBEDDING_API_KEY": "sk-embeddings"}
    for name, value in (told | secrets).items():
        monkeypatch.setenv(f"SLUICE_{name}", value)
    settings = load(GatewaySettings)
    assert settings.answer_limits().in_flight == 3
    assert not {name for name in type(settings).model_fields if name.endswith("api_key")}


def test_keys_from_two_sources_stop_the_start(
    keys: dict[str, str], refused: Callable[[dict[str, str]], str]
) -> None:
    said = refused(keys | {"ISSUER_JWKS_URL": "https://login.example.org/keys"})
    assert said.startswith("SLUICE_ISSUER_KEY and SLUICE_ISSUER_JWKS_URL are both set")


def test_published_keys_are_a_key_source_if_the_issuer_is_named(
    keys: dict[str, str],
    refused: Callable[[dict[str, str]], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del keys["ISSUER_KEY"]
    published = keys | {"ISSUER_JWKS_URL": "https://login.example.org/keys", "ISSUER": ""}
    assert refused(published).startswith("SLUICE_ISSUER is missing")
    monkeypatch.setenv("SLUICE_ISSUER", keys["ISSUER"])
    assert load(GatewaySettings).issuer_algorithms == ("RS256", "ES256", "EdDSA")


async def test_the_process_itself_stops_at_wrong_settings() -> None:
    code, said = await ended(ENV="production")
    assert code == 2
    assert said.startswith("SLUICE_INTERNAL_SIGNING_KEY is missing")


async def test_a_development_token_opens_nothing_in_production(
    keys: dict[str, str], tmp_path: Path
) -> None:
    async with (
        served(*ALL) as behind,
        gateway(behind, tmp_path / "log", keys) as house,
    ):
        assert (await house.ask()).status_code == 401


async def test_a_used_port_is_named() -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = str(used.getsockname()[1])
        for name, other in (("HTTP_PORT", "PORT"), ("PORT", "HTTP_PORT")):
            env = {"ENV": "development", name: port, other: str(find_port())}
            code, said = await ended(**env)
            assert code == 3
            assert json.loads(said.splitlines()[-1])["port"] == int(port)


async def test_without_generate_it_becomes_ready_and_shows_the_passages(
    tmp_path: Path, redis_server: Server
) -> None:
    async with (
        served("retrieve", "assemble", "ingest") as behind,
        gateway(behind, tmp_path / "log", {"REDIS_URL": redis_server.url}) as house,
    ):
        found = await house.http.get("/healthz")
        assert (found.status_code, found.json()["down"]) == (200, ["generate"])
        health = health_pb2_grpc.HealthStub(house.channel)
        detail = await health.Check(health_pb2.HealthCheckRequest(service="generate"), timeout=5)
        assert detail.status == health_pb2.HealthCheckResponse.NOT_SERVING
        answer = (await house.ask()).json()
        assert (answer["reason"], len(answer["sources"])) == ("MODEL_UNAVAILABLE", 2)


async def test_without_retrieve_it_is_unready_until_retrieve_is_there(
    tmp_path: Path, redis_server: Server
) -> None:
    async with (
        served("assemble", "generate", "ingest") as behind,
        gateway(behind, tmp_path / "log", {"REDIS_URL": redis_server.url}, wait=False) as house,
    ):

        async def told() -> httpx.Response:
            return await house.http.get("/healthz")

        async def only_retrieve_is_missing() -> bool:
            return bool((await told()).json()["down"] == ["retrieve"])

        async def ready() -> bool:
            return (await told()).status_code == 200

        await until(house.listens)
        await until(only_retrieve_is_missing)
        assert (await told()).status_code == 503
        assert (await told()).json()["status"] == "unready"
        await behind["retrieve"].start()
        await until(ready)
        assert (await house.ask()).status_code == 200


async def test_on_sigterm_running_questions_end_well_and_it_exits_0(tmp_path: Path) -> None:
    async with (
        served(*ALL) as behind,
        gateway(behind, tmp_path / "log") as house,
    ):
        release = behind["generate"].hold()
        asking = asyncio.create_task(house.ask())
        await behind["generate"].reached()
        house.process.terminate()

        async def deaf() -> bool:
            return not await house.listens()

        await until(deaf)
        release.set()
        response = await asking
        assert (response.status_code, response.json()["mode"]) == (200, "EXTRACTIVE")
        assert await asyncio.wait_for(house.process.wait(), 10) == 0


async def test_the_grace_period_ends_questions_that_do_not(tmp_path: Path) -> None:
    async with (
        served(*ALL) as behind,
        gateway(behind, tmp_path / "log", {"GRACE_SECONDS": "1"}) as house,
    ):
        behind["generate"].behaviour = hanging
        asking = asyncio.create_task(
            house.http.post("/v1/answers", json={"question": QUESTION}, headers=bearer())
        )
        listening = asyncio.create_task(house.hear())
        await until(partial(asked_by, behind["generate"], 2))
        house.process.terminate()
        assert await asyncio.wait_for(house.process.wait(), 10) == 0
        await asyncio.wait_for(behind["generate"].cancelled.wait(), 5)
        response = await asking
        assert (response.status_code, response.json()["reason"]) == (503, "STOPPING")
        *_, last = await listening
        assert (last.name, last.content["reason"]) == ("error", "STOPPING")


async def asked_by(stage: Stage, callers: int) -> bool:
    return len(stage.seen) == callers


def test_no_answer_lasts_longer_than_a_connection_may_after_its_age() -> None:
    grace = dict(serve._SERVER_OPTIONS)["grpc.max_connection_age_grace_ms"]
    (longest,) = [
        limit.le
        for limit in GatewaySettings.model_fields["answer_deadline"].metadata
        if isinstance(limit, Le) and isinstance(limit.le, int)
    ]
    assert grace > 1_000 * longest
