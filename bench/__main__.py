"""Every benchmark in turn, and one table of what each measured and was to reach.

What each of them prints is kept in the folder of `--keep`, a JSON document each.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NAMES = (
    "pipeline",
    "stream",
    "hops",
    "retrieve",
    "assemble",
    "capacity",
    "replicas",
    "ingest",
    "overload",
    "start",
)
HEADS = ("benchmark", "what", "figure", "floor or peer", "ratio", "reach", "met")
MET = {True: "yes", False: "NO", None: "-"}

Row = Mapping[str, Any]


def run(name: str) -> dict[str, Any]:
    """What the benchmark says; its own words on what is missing go where ours do."""
    print(f"{name} ...", file=sys.stderr, flush=True)
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", f"bench.{name}", "--json"], stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(rows: Mapping[str, Sequence[Row]]) -> str:
    """As Markdown, rows by benchmark."""
    lines = [cells(name, one) for name, found in rows.items() for one in found]
    widths = [max(map(len, column)) for column in zip(HEADS, *lines, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |"
        for line in (HEADS, rule, *lines)
    )


def cells(name: str, one: Row) -> tuple[str, ...]:
    unit, ratio = one["unit"], one["ratio"]
    than = "" if one["than"] is None else f": {one['than']:g} {unit}".rstrip()
    return (
        name,
        one["what"],
        f"{one['figure']:g} {unit}".rstrip(),
        f"{one['beside']}{than}",
        "" if ratio is None else f"{ratio:g}",
        one["reach"],
        MET[one["met"]],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; else all")
    parser.add_argument("--keep", type=Path, default=Path("build/bench"))
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    given.keep.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    rows = {}
    for name in given.names or NAMES:
        found = run(name)
        (given.keep / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
        rows[name] = found["rows"]
    print(table(rows))
    print(f"\nThe load was {load:.1f} when it began.")


if __name__ == "__main__":
    main()
