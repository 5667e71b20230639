"""What a gateway does with more than there is room for: answers, refusals, memory, many readers.

The whole suite has room for few questions, and a provider that takes half a second for an answer.
Callers come first one by one, which is the unloaded measure, then at a multiple of the rate that
the room allows, whether earlier ones were answered or not, from a process on the same cores. Prints
JSON: milliseconds from when a call was due to the last byte of its response, for answers and for
refusals, how late the callers themselves were, and the gateway's memory. Then one gateway process
alone, before stages of a few lines: so many answers streamed at once, half of them to slow readers.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from bench.parts import server, suite
from bench.parts.deltas import SHORT
from bench.parts.processes import megabytes
from bench.parts.rows import Reach, row
from bench.parts.suite import Suite
from local import ports
from local.ports import LOOPBACK

LIMIT = 20  # questions at once
ANSWER = 0.5  # seconds that the provider writes an answer
TIMES = 5
SECONDS = 60.0
UNLOADED_RATE = 1.0
STREAMS = 1_000
PACE = 5.0  # deltas a second
LOOK_EVERY = 0.5
STARTS_WITHIN = 60.0
QUESTION = "How often is the level of the harbour tanks measured?"
# Nor is anybody answered from memory.
ROOM = {
    "MAX_IN_FLIGHT": str(LIMIT),
    "SHARED_MAX_IN_FLIGHT": str(LIMIT),
    "ANSWER_CACHE_SECONDS": "0",
}

Report = dict[str, Any]


def overloaded(times: float, seconds: float) -> Report:
    """The suite without load, then with too much."""
    pause = ANSWER / SHORT
    with suite.running(pause, {**suite.BOUNDLESS, **ROOM}) as started:
        called(started, 5, 2)  # what is loaded at first use
        alone, _ = called(started, UNLOADED_RATE, seconds / 2)
        rate = times * LIMIT / ANSWER
        found, memory = called(started, rate, seconds)
    answered, refused = _parted(found["ends"])
    unloaded, _ = _parted(alone["ends"])
    return {
        "limit": LIMIT,
        "rate": rate,
        "seconds": seconds,
        "unloaded_ms": quantiles(unloaded),
        "answered_ms": quantiles(answered),
        "refused_ms": quantiles(refused),
        "answered_p99_to_unloaded": round(
            quantiles(answered)["p99"] / quantiles(unloaded)["p99"], 2
        ),
        "ends": {how: len(took) for how, took in found["ends"].items()},
        "callers_late_ms": quantiles(found["late"]),
        "gateway_mb": memory,
    }


def called(started: Suite, rate: float, seconds: float) -> tuple[Report, Report]:
    """What the callers saw, and the gateway's memory meanwhile."""
    port = started.ports["gateway"]
    words = _words(port=port, tenant=suite.TENANT, rate=rate, seconds=seconds, question=QUESTION)
    return _watched("bench.parts.callers", words, started.pids()["gateway"])


def _parted(ends: Mapping[str, Sequence[float]]) -> tuple[list[float], list[float]]:
    """Seconds of what was answered, and of what was refused for want of room."""
    other = {
        how: len(took) for how, took in ends.items() if how not in {"GENERATED", "503 NO_ROOM"}
    }
    if other:
        print(f"neither answered nor refused: {other}", file=sys.stderr)
    return list(ends.get("GENERATED", ())), list(ends.get("503 NO_ROOM", ()))


def streamed(streams: int, seconds: float) -> Report:
    """Readers of one gateway process, half of them slow."""
    deltas = round(seconds * PACE)
    with ExitStack() as ending:
        folder = Path(ending.enter_context(TemporaryDirectory()))
        redis = ending.enter_context(server.running())
        stages, grpc, http = ports.free(3)
        words = _words(port=stages, pause=1 / PACE, deltas=deltas)
        suite.start(ending, folder, "bench.parts.pacing", words, os.environ)
        told = _alone(stages, grpc, http, redis.url, streams)
        gateway = suite.start(ending, folder, "gateway", [], {**os.environ, **told})
        _await(http)
        words = _words(
            port=http, tenant=suite.TENANT, streams=streams, slow=streams // 2, deltas=deltas
        )
        found, memory = _watched("bench.parts.readers", words, gateway.pid)
    each = (memory["most"] - memory["begin"]) * 1_024 / streams
    return {
        "streams": streams,
        "deltas": deltas,
        **found,
        "gateway_mb": memory,
        "kb_each": round(each),
    }


def _alone(stages: int, grpc: int, http: int, redis: str, streams: int) -> dict[str, str]:
    target = f"dns:///{LOOPBACK}:{stages}"
    settings = {
        "ENV": "development",
        "HOST": LOOPBACK,
        "PORT": str(grpc),
        "HTTP_PORT": str(http),
        "REDIS_URL": redis,
        "MAX_IN_FLIGHT": str(streams),
        "SHARED_MAX_IN_FLIGHT": str(streams),
        "MAX_CONNECTIONS": str(2 * streams),
        "ANSWER_DEADLINE": "600",
        "ADMISSION_DECISION_SECONDS": "5",
        **suite.BOUNDLESS,
        **{f"{name}_TARGET": target for name in ("RETRIEVE", "ASSEMBLE", "GENERATE")},
    }
    return {f"SLUICE_{name}": value for name, value in settings.items()}


def _await(port: int) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while not _is_ready(port):
        if time.monotonic() > deadline:
            raise SystemExit("the gateway does not start")
        time.sleep(LOOK_EVERY)


def _is_ready(port: int) -> bool:
    try:
        return (
            httpx.get(f"http://{LOOPBACK}:{port}/healthz", timeout=2).status_code == httpx.codes.OK
        )
    except httpx.HTTPError:
        return False


def _words(**options: object) -> list[str]:
    return [str(word) for name, value in options.items() for word in (f"--{name}", value)]


def _watched(module: str, words: Sequence[str], pid: int) -> tuple[Report, Report]:
    """What the program prints, and the megabytes of the process `pid` while it runs."""
    sizes = [megabytes(pid)]
    with TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        with said.open("wb") as output:
            program = subprocess.Popen([sys.executable, "-m", module, *words], stdout=output)  # noqa: S603 - our own
        while program.poll() is None:
            time.sleep(LOOK_EVERY)
            sizes.append(megabytes(pid))
        if program.returncode:
            raise SystemExit(f"{module} failed")
        found: Report = json.loads(said.read_text())
    half = len(sizes) // 2
    return found, {"begin": sizes[0], "half": sizes[half], "end": sizes[-1], "most": max(sizes)}


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    ordered = sorted(seconds) or [0.0]
    at = {"p50": len(ordered) // 2, "p99": int(len(ordered) * 0.99), "max": -1}
    return {name: round(1e3 * ordered[place], 1) for name, place in at.items()}


def measure(times: float = TIMES, seconds: float = SECONDS, streams: int = STREAMS) -> Report:
    load = round(os.getloadavg()[0], 1)
    found, read = overloaded(times, seconds), streamed(streams, seconds)
    return {"load": load, "overload": found, "streams": read, "rows": _rows(found, read)}


def _rows(found: Report, read: Report) -> list[Report]:
    return [
        row(
            "p99 of answers at five times the rate",
            found["answered_ms"]["p99"],
            "ms",
            Reach(2),
            beside="without load",
            than=found["unloaded_ms"]["p99"],
        ),
        row("p99 of refusals meanwhile", found["refused_ms"]["p99"], "ms", Reach(50, "figure")),
        row(
            f"broken of {read['streams']} streams at once",
            read["broken"],
            "",
            Reach(0, "figure"),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--times", type=float, default=TIMES, help="of the rate that there is room for"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each part")
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--json", action="store_true", help="one line, for programs")
    given = parser.parse_args()
    found = measure(given.times, given.seconds, given.streams)
    print(json.dumps(found, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
