"""The whole suite as a user starts it, once for all tests of this folder."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from chassis.identity import AccessLevel
from cli.identity import Identity
from local import ports as port_numbers
from tests.suite.collector import Collector

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
START_SECONDS = 90
POLL_SECONDS = 0.1
CONTENT = {"GENERATED", "EXTRACTIVE"}
# Every process of a suite without a small model.
PARTS = (
    "redis",
    "jobs",
    "qdrant",
    "models",
    "ingest",
    "retrieve",
    "assemble",
    "generate",
    "gateway",
    "worker",
)


@dataclass(frozen=True, slots=True)
class Running:
    """A suite that runs: its data folder, its gateway, and its command line."""

    data: Path
    ports: Mapping[str, int]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['gateway']}"

    def sluice(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the CLI."""
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def ask(
        self, question: str, level: str = "team", groups: Sequence[str] = (), tenant: str = "demo"
    ) -> httpx.Response:
        person = Identity("tester", tenant, AccessLevel.parse(level), tuple(groups))
        return httpx.post(
            f"{self.url}/v1/answers",
            json={"question": question},
            headers={"Authorization": f"Bearer {person.for_gateway()}"},
            timeout=60,
        )

    def pids(self) -> dict[str, int]:
        state = json.loads((self.data / "suite.json").read_text())
        return {part["name"]: part["pid"] for part in state["parts"]}

    def ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within the time."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < end:
        if condition():
            return True
        pause.wait(POLL_SECONDS)
    return False


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    with Collector() as started:
        yield started


@contextmanager
def started(data: Path, *arguments: str, **told: str) -> Iterator[Running]:
    """`sluice up` with these arguments on free ports; no process of it outlives the block."""
    ports = port_numbers.all_free()
    settings = {port_numbers.setting(name): str(port) for name, port in ports.items()}
    environment = {**os.environ, **settings, **told}
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "up", "--data", str(data), *arguments],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    running = Running(data, ports, environment, process)
    try:
        came = wait_for(lambda: process.poll() is not None or running.ready(), START_SECONDS)
        assert came, "not ready in time"
        assert process.poll() is None, "ended"
        yield running
        pids = running.pids().values()
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output.decode()
    assert not any(alive(pid) for pid in pids)


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Running]:
    told = {
        "SLUICE_OTLP_ENDPOINT": collector.endpoint,
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
    }
    with started(tmp_path_factory.mktemp("suite"), **told) as running:
        yield running


@pytest.fixture(scope="session")
def examples(suite: Running) -> Running:
    """The suite with the example corpus in it."""
    done = suite.sluice("ingest", str(EXAMPLES / "corpus"), "--data", str(suite.data), "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    return suite
