"""The whole suite as `sluice up` starts it, before a scripted provider."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import httpx

from bench.parts import files
from local import ports

STARTS_WITHIN = 120.0  # seconds
ENDS_WITHIN = 60.0
LOOK_EVERY = 0.1
TENANT = "bench"
CALLS = "calls.log"
# One document, which the benchmark's question finds.
DOCUMENT = """# Harbour tanks

The level of the harbour tanks is measured every minute, and the readings are kept for a year.
"""
# Wide enough that nothing waits for room.
WIDE = {
    "ANSWER_REQUESTS_PER_MINUTE": "6e6",
    "ANSWER_TOKENS_PER_MINUTE": "6e8",
    "ANSWER_IN_FLIGHT": "64",
    "ANSWER_MAX_RESERVATION": "32000",
    "MAX_IN_FLIGHT": "64",
    "SHARED_MAX_IN_FLIGHT": "64",
}
# Nobody is refused for having asked too often.
BOUNDLESS = {
    "SUBJECT_REQUESTS_PER_MINUTE": "6e6",
    "SUBJECT_REQUEST_BURST": "1e6",
    "TENANT_REQUESTS_PER_MINUTE": "6e6",
    "TENANT_REQUEST_BURST": "1e6",
}


@dataclass(frozen=True, slots=True)
class Suite:
    """`ports` by the process's name; `provider` is its port, and `calls` what it wrote of them.

    `data` is the suite's own folder.
    """

    ports: Mapping[str, int]
    provider: int
    calls: Path
    data: Path

    @property
    def url(self) -> str:
        return f"http://{ports.LOOPBACK}:{self.ports['gateway']}"

    @property
    def redis(self) -> str:
        return f"redis://{ports.LOOPBACK}:{self.ports['redis']}/0"

    def pids(self) -> dict[str, int]:
        """Of all its processes, by name."""
        parts = json.loads((self.data / "suite.json").read_text())["parts"]
        return {part["name"]: part["pid"] for part in parts if part["pid"]}


@contextmanager
def running(pause: float, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[Suite]:
    """It is ready and holds one document. `pause` is seconds between the provider's deltas.

    `settings` go before those that are the same for every benchmark.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        told = ["--pause", str(pause), "--log", str(folder / CALLS)]
        with _started(folder, ["bench.parts.deltas", *told], settings, 0) as suite:
            yield suite


@contextmanager
def answering(settings: Mapping[str, str], others: int) -> Iterator[Suite]:
    """As `running`, before a provider that answers at once. So many other documents are there."""
    words = ["bench.parts.whole"]
    with TemporaryDirectory() as name, _started(Path(name), words, settings, others) as suite:
        yield suite


@contextmanager
def _started(
    folder: Path, writing: Sequence[str], settings: Mapping[str, str], others: int
) -> Iterator[Suite]:
    (provider,) = ports.free(1)
    suite = Suite(ports.all_free(), provider, folder / CALLS, folder / "suite")
    with ExitStack() as ending:
        module, *words = writing
        start(ending, folder, module, [*words, "--port", str(provider)], os.environ)
        data, documents = suite.data, folder / "documents"
        documents.mkdir()
        files.write(documents, others)
        (documents / "tanks.md").write_text(DOCUMENT)
        environment = {**os.environ, **_settings(suite, settings)}
        up = start(ending, folder, "cli.main", ["up", "--data", str(data)], environment)
        _await_ready(suite, up, folder)
        ingest = [str(documents), "--data", str(data), "--tenant", TENANT]
        subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "cli.main", "ingest", *ingest],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        yield suite


def _settings(suite: Suite, told: Mapping[str, str]) -> dict[str, str]:
    provider = f"http://{ports.LOOPBACK}:{suite.provider}/v1"
    settings = {
        **WIDE,
        "EMBEDDING_BASE_URL": provider,
        "ANSWER_MODE": "generated",
        "ANSWER_RELEASE": "token",
        "ANSWER_BASE_URL": provider,
        "ANSWER_MODEL": "scripted",
        **told,
    }
    own = {ports.setting(name): str(port) for name, port in suite.ports.items()}
    return {**own, **{f"SLUICE_{name}": value for name, value in settings.items()}}


def start(
    ending: ExitStack, folder: Path, module: str, words: list[str], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    output = ending.enter_context((folder / f"{module}.log").open("wb"))
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", module, *words], env=environment, stdout=output, stderr=output
    )
    ending.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await_ready(suite: Suite, up: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while not _is_ready(suite):
        if up.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the suite does not start: {(folder / 'cli.main.log').read_text()}")
        time.sleep(LOOK_EVERY)


def _is_ready(suite: Suite) -> bool:
    try:
        return httpx.get(f"{suite.url}/healthz", timeout=2).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
