"""Processes that know each other by certificates, made by an authority in the test."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from pydantic import ValidationError

from chassis import channels, errors
from chassis.certificates import Certificates, Credentials, Paths, Unusable, read
from chassis.identity import AccessLevel, Caller, Minter, development_key
from chassis.renewed import RenewedChannel
from chassis.settings import TrustSettings, complaints
from gateway.line import Line
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from tests.authority import Authority, told

STAGE = Path(__file__).with_name("stage.py")
SERVICE = "sluice.retrieve.v1.RetrieveService"
CALLER = Caller("ana", "acme", AccessLevel.TEAM)


async def ask(channel: grpc.aio.Channel, question: str = "who", top_k: int = 0) -> str:
    """The tenant that the stage saw. Raises SluiceErrors."""
    stub = retrieve_pb2_grpc.RetrieveServiceStub(channel)
    request = retrieve_pb2.RetrieveRequest(question=question, top_k=top_k)
    token = Minter(development_key()).mint(CALLER, "retrieve")
    reply = await channels.call(stub.Retrieve, request, stage="retrieve", token=token, limit=10)
    return reply.embedding_profile


async def serving(channel: grpc.aio.Channel) -> int:
    request = health_pb2.HealthCheckRequest(service="readiness")
    reply = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=5)
    return int(reply.status)


def connect(port: int, files: Paths | None) -> grpc.aio.Channel:
    certificates = Certificates(files) if files else None
    return channels.connect(
        f"dns:///127.0.0.1:{port}", service=SERVICE, idempotent=False, certificates=certificates
    )


def shown(port: int, files: Credentials | None, authority: bytes) -> grpc.aio.Channel:
    """A channel of whoever it may be."""
    pair = (files.key, files.certificate) if files else (None, None)
    return grpc.aio.secure_channel(
        f"127.0.0.1:{port}", grpc.ssl_channel_credentials(authority, *pair)
    )


async def test_only_who_shows_a_right_certificate_is_served_and_a_renewed_one_counts_at_once(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    authority, stranger, successor = Authority(), Authority(), Authority()
    theirs, ours = authority.write(tmp_path / "stage"), authority.write(tmp_path / "caller")
    port, probed = free_port(), free_port()
    env = {"SLUICE_ENV": "development", "SLUICE_PORT": str(port), "SLUICE_HEALTH_PORT": str(probed)}
    env["GRPC_VERBOSITY"] = "INFO"  # so that gRPC says whom it refuses, and why
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(STAGE), env={**env, **told(theirs)}, stdout=PIPE, stderr=PIPE
    )
    known = read(ours)
    strangers = stranger.write(tmp_path / "stranger")
    refused = {
        "PEER_DID_NOT_RETURN_A_CERTIFICATE": shown(port, None, known.authority),
        "WRONG_VERSION_NUMBER": connect(port, None),
        "unable to get local issuer certificate": shown(port, read(strangers), known.authority),
        "certificate has expired": shown(port, expired(authority, tmp_path), known.authority),
    }
    try:
        async with connect(probed, None) as plain, connect(port, ours) as channel:
            await plain.channel_ready()
            await channel.channel_ready()
            assert await ask(channel) == "acme/team"
            assert await serving(channel) == await serving(plain) == 1
            with pytest.raises(errors.SluiceError):
                await ask(plain)
            for other in refused.values():
                with pytest.raises(errors.Unavailable) as denied:
                    await ask(other)
                assert denied.value.message == "retrieve cannot be reached"
                await other.close()

            long = asyncio.create_task(ask(channel, "wait", top_k=1))
            assert await process.stdout.readline() == b"began\n"  # type: ignore[union-attr] # a pipe
            successor.write(theirs.certificate.parent)
            successor.write(ours.certificate.parent)
            async with shown(port, known, known.authority) as late:
                with pytest.raises(errors.Unavailable):
                    await ask(late)
            assert await ask(channel) == "acme/team"
            assert isinstance(channel, RenewedChannel)
            assert len(channel._before) == 1
            assert await long == "acme/team"
            assert not channel._before
        process.terminate()
        async with asyncio.timeout(10):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode == 0
    log = said.decode()
    assert [why for why in refused if why not in log] == []
    assert '"event": "certificate_renewed"' in log
    assert "PRIVATE" not in log
    assert "BEGIN" not in log


def expired(authority: Authority, folder: Path) -> Credentials:
    paths = authority.write(folder / "expired", days=-1)
    return Credentials(
        paths.certificate.read_bytes(),
        paths.key.read_bytes(),
        paths.authority.read_bytes(),
        datetime.now(UTC),
    )


@asynccontextmanager
async def impostor(shows: Credentials | None) -> AsyncIterator[int]:
    """A server that shows whatever it has; its port."""
    server = grpc.aio.server()
    if shows is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        credentials = grpc.ssl_server_credentials([(shows.key, shows.certificate)])
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("stranger", "its certificate is of another authority"),
        ("expired", "its certificate has expired"),
        ("another name", "its certificate is for another name"),
        ("none", "it takes no certificates"),
    ],
)
async def test_a_stage_that_shows_no_right_certificate_is_told_nothing(
    kind: str, why: str, tmp_path: Path
) -> None:
    authority = Authority()
    shown_by: dict[str, Credentials | None] = {
        "stranger": read(Authority().write(tmp_path / "stranger")),
        "expired": expired(authority, tmp_path),
        "another name": read(authority.write(tmp_path / "other", "generate")),
        "none": None,
    }
    ours = authority.write(tmp_path / "ours")
    async with impostor(shown_by[kind]) as port, connect(port, ours) as channel:
        with pytest.raises(errors.Unavailable) as refused:
            await ask(channel)
        minter = Minter(development_key())
        with pytest.raises(errors.Unavailable, match=f"retrieve cannot be reached: {why}"):
            await Line("retrieve", channel, minter, limit=1).check()
    assert refused.value.message == "retrieve cannot be reached"
    assert refused.value.reason == "STAGE_UNAVAILABLE"
    assert refused.value.__notes__ == [why]


def test_what_does_not_hold_together_does_not_count(tmp_path: Path) -> None:
    authority = Authority()
    files = authority.write(tmp_path / "ours")
    certificates = Certificates(files)
    before = certificates.current()
    other = authority.write(tmp_path / "other")
    with structlog.testing.capture_logs() as logged:
        other.certificate.replace(files.certificate)
        assert certificates.current() == certificates.current() == before
        other.key.replace(files.key)
        after = certificates.current()
        assert after != before
        files.authority.unlink()
        assert certificates.current() == after
    assert [entry["event"] for entry in logged] == [
        "certificate_not_renewed",
        "certificate_renewed",
        "certificate_not_renewed",
    ]
    assert logged[0]["problem"] == f"{files.key} is not the key of {files.certificate}"


def test_an_authority_whose_time_is_over_may_stand_beside_its_successor(tmp_path: Path) -> None:
    files = Authority().write(tmp_path / "ours")
    over = Authority().write(tmp_path / "over", days=-1).certificate.read_bytes()
    files.authority.write_bytes(over + files.authority.read_bytes())
    assert Certificates(files).current().authority.startswith(over)
    files.authority.write_bytes(over)
    with pytest.raises(Unusable, match=r"ca\.crt expired at"):
        read(files)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda files: files.pop("SLUICE_TLS_KEY"), "SLUICE_TLS_KEY: missing, while others"),
        (lambda files: Path(files["SLUICE_TLS_KEY"]).unlink(), "SLUICE_TLS_KEY: cannot read"),
        (
            lambda files: Path(files["SLUICE_TLS_KEY"]).write_text("hunter2"),
            "holds no private key in PEM",
        ),
        (
            lambda files: Path(files["SLUICE_TLS_AUTHORITY"]).write_text("hunter2"),
            "holds no certificate in PEM",
        ),
        (
            lambda files: Authority().write(Path(files["SLUICE_TLS_KEY"]).parent, days=-1),
            "tls.crt expired at 20",
        ),
    ],
)
def test_files_that_nobody_would_accept_are_refused_at_the_start(
    spoil: Callable[[dict[str, str]], object],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = told(Authority().write(tmp_path / "ours"))
    spoil(files)
    for name, value in files.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError) as refused:
        TrustSettings()
    (line,) = complaints(TrustSettings, refused.value)
    assert complaint in line
    assert line.startswith("SLUICE_TLS_")
    assert "for example SLUICE_TLS_" in line
    assert "hunter2" not in line
