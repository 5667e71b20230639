"""A suite whose processes know each other by certificates: looked at whole, and broken."""

import json
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner

from chassis.certificates import Certificates
from chassis.identity import LEEWAY, AccessLevel, development_key
from cli import addresses, gateway_service, ingest_service, status
from cli.doctor import machine, parts, processes, run, setup
from cli.doctor.finding import Finding, State
from cli.identity import Identity
from cli.main import app
from cli.output import Output
from local import ports
from local.suite import Suite
from tests.authority import Authority, told

DOCUMENT = b"# Deploys\n\nDeploys run on Monday at nine, never on a Friday.\n"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def files(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return told(authority.write(tmp_path_factory.mktemp("tls")))


@pytest.fixture(scope="module")
def suite(
    files: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Suite, Path]]:
    data = tmp_path_factory.mktemp("suite") / "data"
    with Suite(data, ports="free", settings=files) as running:
        yield running, data


@pytest.fixture
def environment(files: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in files.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


class Shown:
    def add(self, text: str) -> None: ...

    def withdraw(self, reason: str) -> None: ...


def worst(findings: list[Finding], part: str) -> Finding:
    return next(
        one
        for state in reversed(State)
        for one in findings
        if (one.part, one.state) == (part, state)
    )


@pytest.mark.usefixtures("environment")
async def test_all_hops_speak_by_certificates_and_status_tells_of_each_process(
    suite: tuple[Suite, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    running, data = suite
    person = Identity("ana", "demo", AccessLevel.TEAM, roles=("operator",))
    ingest = addresses.ingest(data)
    async with ingest_service.connected(ingest, person.for_ingest) as service:
        assert (await service.put("deploys.md", "handbook", DOCUMENT)).outcome == "added"
    token, shown_text = person.for_gateway(), Shown()
    answer = await gateway_service.stream(running.url, token, "When do deploys run?", shown_text)
    assert answer.mode in {"EXTRACTIVE", "ABSTAINED"}
    assert answer.timings.keys() >= {"retrieve", "assemble", "generate"}
    asked = status.Asked(ingest, person.for_ingest, running.url, person.for_gateway)
    assert await status.run(data, running.ports, asked, Output(as_json=True)) == 0
    shown = capsys.readouterr()
    told_all = json.loads(shown.out)
    assert {part["state"] for part in told_all["parts"]} == {"ready"}
    without = {part["name"] for part in told_all["parts"] if not part["version"]}
    assert without == set()
    assert told_all["index"]["documents"] == 1
    assert {pool["name"] for pool in told_all["capacity"]["pools"]} == {"answers", "embeddings"}
    assert "capacity: 0 of " in shown.err


async def test_a_whole_suite_has_no_problem_and_no_warning_but_that_of_its_young_certificate(
    suite: tuple[Suite, Path], environment: pytest.MonkeyPatch
) -> None:
    found = await run.examined(suite[1], ())
    assert [one for one in found if one.state is not State.OK and one.part != "certificate"] == []
    assert worst(found, "certificate").state is State.WARNING
    seen = {one.part for one in found}
    assert seen >= {"redis", "jobs", "index", "embeddings", "retrieve", "gateway"}
    assert seen >= {"clock of redis", "clock of gateway", "settings of worker"}


async def test_each_thing_that_is_broken_is_named_with_what_mends_it(
    suite: tuple[Suite, Path], environment: pytest.MonkeyPatch
) -> None:
    running, data = suite
    not_for_jobs = f"redis://127.0.0.1:{running.ports['redis']}/0"
    environment.setenv("SLUICE_JOBS_REDIS_URL", not_for_jobs)
    nowhere = f"127.0.0.1:{ports.free(1)[0]}"
    environment.setenv("SLUICE_REDIS_URL", f"redis://{nowhere}/0")
    environment.setenv("SLUICE_ASSEMBLE_TARGET", f"dns:///{nowhere}")
    environment.setenv("SLUICE_TOP_K", "many")
    found = await run.examined(data, ("ingest", "retrieve", "gateway"))
    assert worst(found, "redis").mend == "start it, or mend SLUICE_REDIS_URL"
    assert worst(found, "jobs").said == "may lose jobs that were accepted"
    assert "appendfsync always" in worst(found, "jobs").mend
    assert "nothing answers" in worst(found, "assemble").said
    assert worst(found, "retrieve").state is State.OK
    assert "SLUICE_TOP_K" in worst(found, "settings of retrieve").said
    assert "many" not in worst(found, "settings of retrieve").said
    assert worst(found, "embeddings").state is State.WARNING


async def test_an_index_or_a_model_of_another_contract_is_a_problem(
    suite: tuple[Suite, Path], environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("SLUICE_EMBEDDING_PROFILE", "text-embedding-3-small")
    environment.setenv("SLUICE_EMBEDDING_MODEL", "multilingual-e5-small")
    told_otherwise = setup.read(suite[1], ("retrieve",))
    (index,) = await parts.index(told_otherwise)
    assert index.state is State.PROBLEM
    assert "embedding profile is multilingual-e5-small" in index.said
    assert "sluice reindex" in index.mend
    (embeddings,) = await parts.embeddings(told_otherwise)
    assert embeddings.state is State.PROBLEM
    assert "384 dimensions where the profile has 1536" in embeddings.said
    assert "SLUICE_EMBEDDING_MODEL" in embeddings.mend


async def test_a_clock_that_is_off_is_a_problem_at_redis_and_at_the_gateway(
    suite: tuple[Suite, Path], environment: pytest.MonkeyPatch
) -> None:
    running, data = suite
    known = setup.read(data, ())

    def late() -> float:
        return time.time() - 3 * LEEWAY

    for found in (
        await parts.redis(known, late),
        await processes.gateway(known, running.url, late),
    ):
        (clock,) = (one for one in found if one.part.startswith("clock of"))
        assert clock.state is State.PROBLEM
        assert "s ahead of this machine's" in clock.said
        assert "NTP" in clock.mend


async def test_a_stage_that_is_not_trusted_is_told_from_one_that_is_away(
    suite: tuple[Suite, Path], tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    running, _ = suite
    target = f"dns:///127.0.0.1:{running.ports['assemble']}"
    strangers = Certificates(Authority().write(tmp_path / "tls"))
    refused = await processes.stage("assemble", target, strangers)
    assert refused.said.startswith("its certificate is of another authority")
    bare = await processes.stage("assemble", target, None)
    assert bare.state is State.PROBLEM
    assert "closes new connections" in bare.said


def test_folders_keys_and_ports_are_looked_at_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str]
) -> None:
    data = tmp_path / "data"
    data.mkdir(0o755)
    (data / "logs").touch()
    key = tmp_path / "internal.pem"
    key.touch(0o644)
    key.write_bytes(
        development_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("SLUICE_RETRIEVE_PORT", str(port))
        monkeypatch.setenv("SLUICE_INTERNAL_SIGNING_KEY", str(key))
        found = list(machine.look(setup.read(data, ())))
    assert worst(found, f"folder {data}").mend == f"chmod 700 {data}"
    assert worst(found, f"folder {data / 'logs'}").state is State.PROBLEM
    assert worst(found, f"key {key}").state is State.PROBLEM
    assert worst(found, f"key {key}").mend.startswith(f"chmod 600 {key}")
    assert "set SLUICE_RETRIEVE_PORT=" in worst(found, f"port {port}").mend
    assert worst(found, "suite").mend == "start it with `sluice up`"


async def test_the_exit_code_and_the_document_tell_whether_there_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, port in ports.all_free().items():
        monkeypatch.setenv(ports.setting(name), str(port))
    output = Output(as_json=True)
    assert await run.run(tmp_path, ("assemble",), output) == 0
    capsys.readouterr()
    (tmp_path / "logs").touch()
    assert await run.run(tmp_path, ("assemble",), output) == 1
    shown = capsys.readouterr()
    findings = json.loads(shown.out)["findings"]
    (wrong,) = (one for one in findings if one["part"] == f"folder {tmp_path / 'logs'}")
    assert wrong["state"] == "problem"
    assert f"mend: {wrong['mend']}" in shown.err
    unknown = CliRunner().invoke(app, ["doctor", "--processes", "asemble"])
    assert unknown.exit_code == 2
    assert "asemble" in unknown.output
