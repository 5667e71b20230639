"""How long each process takes from its start until it is ready, and what it holds when idle.

What it needs is there already: Valkey, the Qdrant node, a provider, and stages of a few lines for
those that call stages. The processes take turns with an empty gRPC server. Prints JSON: seconds,
processor seconds and megabytes by process, the medians of the rounds.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.parts import programs, server
from bench.parts.processes import cpu_seconds, megabytes
from bench.parts.rows import Reach, row
from local import ports
from local.readiness import Probe, grpc_ready, http_ready

ROUNDS = 5
SETTLES = 1.5  # seconds after which a process that is ready is idle
SECONDS, MEGABYTES = Reach(2, "figure"), Reach(120, "figure")
EMPTY = "empty server"

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Process:
    words: Sequence[str]
    settings: Mapping[str, str]
    probe: Probe


@contextmanager
def needed() -> Iterator[dict[str, str]]:
    """The settings of every process, for what runs meanwhile."""
    qdrant, model, stages = ports.free(3)
    with ExitStack() as ending:
        folder = Path(ending.enter_context(TemporaryDirectory()))
        redis = ending.enter_context(server.running()).url
        provider = f"http://{ports.LOOPBACK}:{model}/v1"
        target = f"dns:///{ports.LOOPBACK}:{stages}"
        told = {
            "ENV": "development",
            "REDIS_URL": redis,
            "JOBS_REDIS_URL": redis,
            "QDRANT_URL": f"http://{ports.LOOPBACK}:{qdrant}",
            "QDRANT_PORT": str(qdrant),
            "QDRANT_DATA": str(folder / "qdrant"),
            "EMBEDDING_BASE_URL": provider,
            "ANSWER_MODE": "generated",
            "ANSWER_BASE_URL": provider,
            "ANSWER_MODEL": "scripted",
            "CAPACITY_DECISION_SECONDS": "2",
            **{f"{stage}_TARGET": target for stage in ("RETRIEVE", "ASSEMBLE", "GENERATE")},
        }
        settings = {f"SLUICE_{name}": value for name, value in told.items()}
        words = ["bench.parts.embeddings", "--port", str(model)]
        programs.start(ending, words, {})
        programs.started(ending, ["local.qdrant_node"], settings, qdrant)
        pacing = ["bench.parts.pacing", "--port", str(stages), "--pause", "1", "--deltas", "1"]
        programs.started(ending, pacing, {}, stages)
        yield settings


def processes(settings: Mapping[str, str]) -> dict[str, Process]:
    """Ingest comes before retrieve: it makes the collection that both check."""
    found = {}
    for name in ("services.assemble", "services.generate", "services.ingest", "services.retrieve"):
        (port,) = ports.free(1)
        found[name] = Process([name], {**settings, "SLUICE_PORT": str(port)}, grpc_ready(port))
    grpc, http, worker, empty = ports.free(4)
    numbers = {"SLUICE_PORT": str(grpc), "SLUICE_HTTP_PORT": str(http)}
    found["gateway"] = Process(["gateway"], {**settings, **numbers}, http_ready(http))
    told = {**settings, "SLUICE_PORT": str(worker)}
    found["gateway.worker"] = Process(["gateway.worker"], told, grpc_ready(worker))
    words = ["bench.parts.echo", "--port", str(empty)]
    found[EMPTY] = Process(words, {}, grpc_ready(empty))
    return found


def once(process: Process) -> dict[str, float]:
    with ExitStack() as ending:
        began = time.perf_counter()
        running = programs.start(ending, process.words, process.settings)
        programs.await_ready(running, process.probe)
        seconds = time.perf_counter() - began
        cpu = cpu_seconds(running.pid)
        time.sleep(SETTLES)
        return {"seconds": seconds, "cpu_seconds": cpu, "idle_mb": megabytes(running.pid)}


def measure(rounds: int = ROUNDS) -> Report:
    load = round(os.getloadavg()[0], 1)
    with needed() as settings:
        asked = processes(settings)
        seen = [{name: once(process) for name, process in asked.items()} for _ in range(rounds)]
    found = {
        name: {
            figure: round(median(one[name][figure] for one in seen), 2) for figure in seen[0][name]
        }
        for name in asked
    }
    return {"load": load, "rounds": rounds, "processes": found, "rows": _rows(found)}


def _rows(found: Mapping[str, Mapping[str, float]]) -> list[Report]:
    """The process that is worst in each."""
    ours = {name: figures for name, figures in found.items() if name != EMPTY}
    slowest = max(ours, key=lambda name: ours[name]["seconds"])
    largest = max(ours, key=lambda name: ours[name]["idle_mb"])
    return [
        row(
            f"start to ready, slowest process ({slowest})",
            ours[slowest]["seconds"],
            "s",
            SECONDS,
            beside="an empty grpc.aio server",
            than=found[EMPTY]["seconds"],
        ),
        row(
            f"idle memory, largest process ({largest})",
            ours[largest]["idle_mb"],
            "MB",
            MEGABYTES,
            beside="an empty grpc.aio server",
            than=found[EMPTY]["idle_mb"],
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true", help="one line, for programs")
    given = parser.parse_args()
    print(json.dumps(measure(given.rounds), indent=None if given.json else 2))


if __name__ == "__main__":
    main()
