"""What ten times the corpus or the load does to the cost of one item.

Each benchmark runs at both sizes. Prints a line each, and draws them into the folder of `--into`:
a flat line costs the same for every item, a steep one is a limit to come. `start` has no size.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

ROWS, COLUMNS = 3, 3
SIZE = (10.5, 8.0)  # inches

Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Growth:
    """`words` are the benchmark's at a size; `cost` reads one item's from what it says."""

    bench: str
    item: str
    cost_of: str
    sizes: tuple[int, int]
    words: Callable[[int], Sequence[object]]
    cost: Callable[[Report], float]


def _last(run: Report) -> Report:
    found: Report = list(run["processes"].values())[-1]
    return found


GROWTHS = (
    Growth(
        "pipeline",
        "documents",
        "ms above the direct call, p50",
        (100, 1_000),
        lambda size: ["--documents", size, "--blocks", 20],
        lambda found: float(found["ways"]["sluice"]["added_ms"]["p50"]),
    ),
    Growth(
        "retrieve",
        "passages",
        "ms of a fused search, p50",
        (2_000, 20_000),
        lambda size: ["--passages", size, "--rounds", 200],
        lambda found: float(found["modes"]["fused"]["stage_ms"]),
    ),
    Growth(
        "stream",
        "streams at once",
        "ms that a delta is late, p50",
        (4, 40),
        lambda size: ["--streams", size, "--rounds", 20, "--leavers", 2],
        lambda found: float(found["many"]["gateway"]["late_ms"]["p50"]),
    ),
    Growth(
        "hops",
        "passages of a call",
        "ms of one of them",
        (20, 200),
        lambda size: ["--passages", size, "--rounds", 200],
        lambda found: found["hops"]["assemble, many passages"]["stage_ms"] / found["passages"],
    ),
    Growth(
        "assemble",
        "candidates",
        "ms of one of them",
        (200, 2_000),
        lambda size: ["--candidates", size],
        lambda found: 1e3 * found["seconds"] / found["candidates"],
    ),
    Growth(
        "capacity",
        "processes",
        "round trip to an empty script's",
        (1, 10),
        lambda size: ["--processes", size],
        lambda found: float(_last(found)["cost"]["reserve"]["p50"]),
    ),
    Growth(
        "replicas",
        "processes",
        "share of the tokens that is not used",
        (1, 10),
        lambda size: ["--processes", size, "--seconds", 30, "--loads", "killed"],
        lambda found: 1 - float(found["loads"]["killed"]["used"]["tokens"]),
    ),
    Growth(
        "ingest",
        "files",
        "ms of one that is new, its embedding free",
        (100, 1_000),
        lambda size: ["--files", size, "--rate", 0],
        lambda found: 1e3 * found["first_seconds"] / found["files"],
    ),
    Growth(
        "overload",
        "streams at once",
        "KB of the gateway for each",
        (100, 1_000),
        lambda size: ["--streams", size, "--seconds", 20],
        lambda found: float(found["streams"]["kb_each"]),
    ),
)


def measure(growth: Growth) -> list[float]:
    """The cost of an item at each size."""
    costs = []
    for size in growth.sizes:
        words = [str(word) for word in growth.words(size)]
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", f"bench.{growth.bench}", "--json", *words],
            stdout=subprocess.PIPE,
            check=True,
        )
        costs.append(round(growth.cost(json.loads(done.stdout)), 4))
    return costs


def draw(found: Mapping[str, Sequence[float]], into: Path) -> None:
    """One panel a benchmark, from nothing upwards, so that flat looks flat."""
    canvas = Figure(SIZE, layout="constrained")
    for place, growth in enumerate(each for each in GROWTHS if each.bench in found):
        axes = canvas.add_subplot(ROWS, COLUMNS, place + 1)
        axes.plot(growth.sizes, found[growth.bench], marker="o")
        axes.set_xscale("log")
        axes.set_xticks(growth.sizes, [f"{size:,}" for size in growth.sizes])
        axes.set_xticks([], minor=True)
        axes.set_ylim(0, 1.3 * max(*found[growth.bench], 1e-3))
        axes.set_title(growth.bench)
        axes.set_xlabel(growth.item)
        axes.set_ylabel(growth.cost_of, fontsize="x-small")
    for kind in ("svg", "png"):
        canvas.savefig(into / f"growth.{kind}")


def told(growth: Growth, costs: Sequence[float]) -> str:
    small, large = costs
    times = f"x {large / small:.2f}" if small else "-"
    sizes = " and ".join(f"{size:,}" for size in growth.sizes)
    return (
        f"{growth.bench}: {growth.cost_of}, {sizes} {growth.item}: {small:g}, {large:g} ({times})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [growth.bench for growth in GROWTHS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; else all")
    parser.add_argument("--into", type=Path, default=Path("build/bench"))
    given = parser.parse_args()
    if unknown := set(given.names) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    given.into.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    found = {}
    for growth in GROWTHS:
        if growth.bench in (given.names or names):
            found[growth.bench] = measure(growth)
            print(told(growth, found[growth.bench]), flush=True)
    print(f"The load was {load:.1f} when it began.")
    (given.into / "growth.json").write_text(json.dumps(found, indent=2) + "\n")
    draw(found, given.into)


if __name__ == "__main__":
    main()
