from pathlib import Path

import pytest

from local import ports
from local.failures import Refused
from local.suite import Suite, environment, tiers

NUMBERS = {name: 6000 + number for number, name in enumerate(ports.DEFAULTS)}


def names(data: Path, numbers: dict[str, int]) -> list[list[str]]:
    told = environment(data, numbers, {})
    return [[part.name for part in tier] for tier in tiers(data, numbers, told)]


def test_stores_come_first_then_the_stages_then_who_conducts_them(tmp_path: Path) -> None:
    assert names(tmp_path, NUMBERS) == [
        ["redis", "jobs", "qdrant", "models", "llm"],
        ["ingest", "retrieve", "assemble", "generate"],
        ["gateway", "worker"],
    ]


def test_every_process_is_told_its_own_port_and_where_the_others_are(tmp_path: Path) -> None:
    told = environment(tmp_path, NUMBERS, {"SLUICE_ENV": "development"})
    parts = {part.name: part for tier in tiers(tmp_path, NUMBERS, told) for part in tier}
    gateway, retrieve = parts["gateway"].environment, parts["retrieve"].environment
    assert retrieve["SLUICE_PORT"] == str(NUMBERS["retrieve"])
    assert retrieve["SLUICE_QDRANT_URL"] == f"http://127.0.0.1:{NUMBERS['qdrant']}"
    assert retrieve["SLUICE_REDIS_URL"] == f"redis://127.0.0.1:{NUMBERS['redis']}/0"
    assert retrieve["SLUICE_EMBEDDING_BASE_URL"] == f"http://127.0.0.1:{NUMBERS['models']}/v1"
    assert gateway["SLUICE_PORT"] == str(NUMBERS["gateway_grpc"])
    assert gateway["SLUICE_HTTP_PORT"] == str(NUMBERS["gateway"])
    assert gateway["SLUICE_GENERATE_TARGET"] == f"dns:///127.0.0.1:{NUMBERS['generate']}"
    assert gateway["SLUICE_ENV"] == "development"
    assert parts["worker"].environment["SLUICE_PORT"] == str(NUMBERS["worker"])
    assert gateway["SLUICE_JOBS_REDIS_URL"] == f"redis://127.0.0.1:{NUMBERS['jobs']}/0"


def test_the_door_and_the_stores_go_before_those_who_work(tmp_path: Path) -> None:
    told = environment(tmp_path, NUMBERS, {})
    nice = {part.name: part.nice for tier in tiers(tmp_path, NUMBERS, told) for part in tier}
    first = {name for name, back in nice.items() if back == 0}
    assert first == {"redis", "jobs", "gateway"}
    assert {back for name, back in nice.items() if name not in first} == {10}


def test_nothing_that_jobs_are_told_is_lost_with_their_store(tmp_path: Path) -> None:
    told = environment(tmp_path, NUMBERS, {})
    parts = {part.name: part for tier in tiers(tmp_path, NUMBERS, told) for part in tier}
    for name, fsync in (("redis", "everysec"), ("jobs", "always")):
        command = parts[name].command
        assert command[command.index("--appendfsync") + 1] == fsync
        assert command[command.index("--dir") + 1] == str(tmp_path / name)


def test_a_part_whose_address_is_set_belongs_to_somebody_else(tmp_path: Path) -> None:
    settings = {"SLUICE_REDIS_URL": "redis://elsewhere:6379/0"}
    suite = Suite(tmp_path, ports="free", settings=settings)
    told = environment(tmp_path, suite.ports, settings)
    assert "redis" not in suite.ports
    assert told["SLUICE_REDIS_URL"] == "redis://elsewhere:6379/0"
    assert names(tmp_path, dict(suite.ports))[0] == ["jobs", "qdrant", "models"]


@pytest.mark.parametrize(
    ("profile", "settings", "first"),
    [
        ("embedded", {}, ["redis", "jobs", "qdrant", "models"]),
        ("embedded", {"SLUICE_ANSWER_MODE": "generated"}, ["redis", "jobs", "qdrant", "models"]),
        ("local-llm", {}, ["redis", "jobs", "qdrant", "models", "llm"]),
        ("local-llm", {"SLUICE_ANSWER_MODEL": "llama3.2"}, ["redis", "jobs", "qdrant", "models"]),
        (
            "local-llm",
            {"SLUICE_ANSWER_BASE_URL": "http://elsewhere/v1"},
            ["redis", "jobs", "qdrant", "models"],
        ),
    ],
)
def test_the_small_model_runs_only_where_it_is_asked_for_by_name(
    tmp_path: Path, profile: str, settings: dict[str, str], first: list[str]
) -> None:
    suite = Suite(tmp_path, profile=profile, ports="free", settings=settings)
    told = environment(tmp_path, suite.ports, settings)
    assert names(tmp_path, dict(suite.ports))[0] == first
    if "llm" in first:
        assert told["SLUICE_ANSWER_BASE_URL"] == f"http://127.0.0.1:{suite.ports['llm']}/v1"


def test_a_wrong_port_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="SLUICE_INGEST_PORT: not a port number"):
        Suite(tmp_path, settings={"SLUICE_INGEST_PORT": "many"})
