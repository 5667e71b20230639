"""Real generate processes in front of a scripted provider, and the Redis that they share."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.parts import server
from bench.parts.server import Server
from capacity import Limits
from local import ports
from local.readiness import grpc_ready

STARTS_WITHIN = 300.0  # seconds
ENDS_WITHIN = 30.0
LOOK_EVERY = 0.1
OUTPUT = 40  # most tokens of an answer


@dataclass(frozen=True, slots=True)
class House:
    """`arrivals` is the provider's log; a replica's own is beside it, named by its port."""

    redis: Server
    arrivals: Path
    replicas: dict[int, subprocess.Popen[bytes]]

    def log(self, port: int) -> Path:
        return self.arrivals.with_name(f"{port}.log")


@contextmanager
def running(count: int, limits: Limits, longest: float) -> Iterator[House]:
    """All are ready. `longest` is seconds of the provider's answers."""
    provider, *own = ports.free(count + 1)
    with ExitStack() as ending:
        folder = Path(ending.enter_context(TemporaryDirectory()))
        redis = ending.enter_context(server.running())
        house = House(redis, folder / "arrivals.log", {})
        words = ("--port", provider, "--log", house.arrivals, "--longest", longest)
        _start(ending, "bench.parts.provider", map(str, words), folder / "provider.log", {})
        environment = _environment(redis.url, provider, limits)
        for port in own:
            told = {**environment, "SLUICE_PORT": str(port)}
            house.replicas[port] = _start(ending, "services.generate", (), house.log(port), told)
        _await_all(house)
        yield house
        for process in house.replicas.values():
            process.terminate()


def _start(
    ending: ExitStack,
    module: str,
    words: Iterator[str] | tuple[()],
    log: Path,
    environment: dict[str, str],
) -> subprocess.Popen[bytes]:
    output = ending.enter_context(log.open("wb"))
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", module, *words],
        env={**os.environ, **environment},
        stdout=output,
        stderr=output,
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


def _environment(redis: str, provider: int, limits: Limits) -> dict[str, str]:
    settings = {
        "ENV": "development",
        "GRACE_SECONDS": 5,
        "REDIS_URL": redis,
        "ANSWER_MODE": "generated",
        "ANSWER_BASE_URL": f"http://{ports.LOOPBACK}:{provider}/v1",
        "ANSWER_MODEL": "scripted",
        "ANSWER_OUTPUT_TOKENS": OUTPUT,
        "ANSWER_REQUESTS_PER_MINUTE": limits.requests_per_minute,
        "ANSWER_TOKENS_PER_MINUTE": limits.tokens_per_minute,
        "ANSWER_IN_FLIGHT": limits.in_flight,
        "ANSWER_MAX_RESERVATION": limits.max_reservation,
        "INTERACTIVE_RESERVE": limits.interactive_reserve,
    }
    return {f"SLUICE_{name}": str(value) for name, value in settings.items()}


def _await_all(house: House) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    for port, process in house.replicas.items():
        while not asyncio.run(_ready(port)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"a replica does not start: {house.log(port).read_text()}")
            time.sleep(LOOK_EVERY)


async def _ready(port: int) -> bool:
    return await grpc_ready(port)()
