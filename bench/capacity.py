"""The shared bucket under many processes: does it hold, is it used up, and what does it cost?

Overshoot is the most that any window took above burst + rate x its length, by Redis's own clock.
Costs are ratios to an empty script over the same client in the same run, and mean nothing alone.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from bench.parts import server, windows
from bench.parts.rows import Reach, row
from bench.parts.server import Server
from bench.parts.watched import Seen, watching
from bench.parts.windows import Change, percentile
from capacity import Limits, SharedBucket, Workload
from capacity.pool import REQUEST, TOKEN

PROCESSES = (1, 4, 8)
SECONDS = 3.0
LARGEST = 100  # tokens of one reservation
AHEAD = 0.3  # seconds from an order to its start
BESIDE = "an empty EVALSHA"
STEP, RATE = Reach(1.3), Reach(0.5, least=True)
OPENS = 4.5  # seconds until a new pool is open and full
# A hundredth of a token: the sums of floats that the bound is held against.
LEAST = 0.01

_WIDE = {
    "requests_per_minute": 6_000_000,
    "tokens_per_minute": 600_000_000,
    "in_flight": 10_000,
    "max_reservation": LARGEST,
}
TOKENS = Limits(**{**_WIDE, "tokens_per_minute": 360_000, "token_burst": 6_000})
REQUESTS = Limits(**{**_WIDE, "requests_per_minute": 12_000, "request_burst": 200})
PLACES = Limits(**{**_WIDE, "in_flight": 10})
WAIT = Limits(**{**_WIDE, "tokens_per_minute": 180_000})
FREE = Limits(**_WIDE)
# Interactive attempts a second while batch saturates: half of what is kept for them.
INTERACTIVE = 3.0

Answers = list[Any]


@dataclass(frozen=True, slots=True)
class Crew:
    """Processes that do the same at the same time."""

    url: str
    members: Sequence[subprocess.Popen[str]]

    def do(self, what: str, limits: Limits, pool: str, seconds: float) -> Answers:
        order = {
            "do": what,
            "url": self.url,
            "pool": pool,
            "limits": asdict(limits),
            "largest": LARGEST,
            "seconds": seconds,
            "processes": len(self.members),
            "every": len(self.members) / INTERACTIVE,
            "start": time.monotonic() + AHEAD,
        }
        for member in self.members:
            print(json.dumps(order), file=member.stdin, flush=True)
        return [_answer(member) for member in self.members]


@dataclass(frozen=True, slots=True)
class Bound:
    """One bucket of the pool, in whole requests or tokens and microseconds."""

    name: str
    burst: float
    rate: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each of the six parts")
    parser.add_argument(
        "--processes", type=int, nargs="+", default=PROCESSES, help="how many, one run for each"
    )
    given = parser.parse_args()
    with server.running() as redis:
        runs = {str(count): measure(redis, count, given.seconds) for count in given.processes}
    report = {"seconds": given.seconds, "processes": runs, "rows": _rows(runs)}
    print(json.dumps(report) if given.json else readable(runs))


def _rows(runs: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What the largest number of processes did, and all of them together."""
    most, run = list(runs.items())[-1]
    over = sum(sum(part.values()) for run in runs.values() for part in run["overshoot"].values())
    steps = [
        row(
            f"{step}, round trip, {most} processes",
            cost["p50"],
            "",
            STEP,
            beside=BESIDE,
            ratio=cost["p50"],
        )
        for step, cost in run["cost"].items()
    ]
    rate = run["throughput"]
    return [
        row("overshoot in any window", over, "", Reach(0, "figure")),
        *steps,
        row(f"decisions a second, {most} processes", rate, "", RATE, beside=BESIDE, ratio=rate),
    ]


def measure(redis: Server, count: int, seconds: float) -> dict[str, Any]:
    """One report for so many processes."""
    pools = {name: uuid.uuid4().hex for name in ("tokens", "requests", "places", "wait", "free")}
    limits = {
        "tokens": TOKENS,
        "requests": REQUESTS,
        "places": PLACES,
        "wait": WAIT,
        "free": FREE,
    }
    asyncio.run(_create(redis.url, {pools[name]: limits[name] for name in pools}))
    opened = time.monotonic() + OPENS
    with crew(redis.url, count) as working:
        time.sleep(max(0.0, opened - time.monotonic()))
        saturated = {
            name: saturate(redis, working, limits[name], pools[name], seconds)
            for name in ("tokens", "requests", "places")
        }
        waits = working.do("wait", WAIT, pools["wait"], seconds)
        costs = working.do("cost", FREE, pools["free"], seconds)
        counts = working.do("throughput", FREE, pools["free"], seconds)
    return {
        "overshoot": {name: run["overshoot"] for name, run in saturated.items()},
        "most_in_flight": {name: run["most_in_flight"] for name, run in saturated.items()},
        "utilisation": {
            name: saturated[name]["utilisation"][name] for name in ("tokens", "requests")
        },
        "interactive_wait": _waited(waits),
        "cost": _cost(costs),
        "throughput": _ratio(
            sum(each["decisions"] for each in counts), sum(each["floor"] for each in counts)
        ),
    }


@contextmanager
def crew(url: str, count: int) -> Iterator[Crew]:
    members = [
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "bench.parts.draw", str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        for member in members:
            _line(member)
        yield Crew(url, members)
    finally:
        for member in members:
            member.communicate()


def saturate(
    redis: Server, working: Crew, limits: Limits, pool: str, seconds: float
) -> dict[str, Any]:
    """What both classes took of one pool, with nothing left over."""
    with watching(redis) as watch:
        answers = working.do("saturate", limits, pool, seconds)
    seen = watch.attempts(pool)
    taken = [
        Taken(seen[name], Workload(workload), tokens, used)
        for grants in answers
        for name, workload, tokens, used in grants
    ]
    return {
        "overshoot": _overshoot(taken, limits),
        "most_in_flight": [
            windows.most_at_once(each.span for each in taken),
            limits.numbers()[0],
        ],
        "utilisation": {
            bound.name: _used(taken, bound) for bound in _bounds(limits, Workload.INTERACTIVE)
        },
    }


@dataclass(frozen=True, slots=True)
class Taken:
    """One grant. `used` is None where nothing was reported: the estimate stays charged."""

    seen: Seen
    workload: Workload
    tokens: int
    used: int | None

    @property
    def span(self) -> tuple[int, int]:
        ended = self.seen.ended
        return self.seen.begun, self.seen.begun + 1 if ended is None else ended

    def changes(self, dimension: str) -> Iterable[Change]:
        yield Change(self.seen.begun, self.tokens if dimension == "tokens" else 1)
        if dimension == "tokens" and self.used is not None and self.seen.ended is not None:
            yield Change(self.seen.ended, self.used - self.tokens)


def _overshoot(taken: Sequence[Taken], limits: Limits) -> dict[str, float]:
    found = {}
    places = dict(zip(("places", "batch_places"), limits.numbers()[:2], strict=True))
    for workload, prefix in ((Workload.INTERACTIVE, ""), (Workload.BATCH, "batch_")):
        counted = [each for each in taken if not prefix or each.workload is workload]
        for bound in _bounds(limits, workload):
            changes = [change for each in counted for change in each.changes(bound.name)]
            over = windows.excess(changes, bound.burst, bound.rate)
            found[prefix + bound.name] = round(over, 3) if over > LEAST else 0
        most = windows.most_at_once(each.span for each in counted)
        found[f"{prefix}places"] = max(0, most - places[f"{prefix}places"])
    return found


def _bounds(limits: Limits, workload: Workload) -> tuple[Bound, Bound]:
    """The buckets that a class draws on alone: the pool's, or batch's within it."""
    first = 2 if workload is Workload.INTERACTIVE else 6
    numbers = limits.numbers()[first : first + 4]
    return (
        Bound("requests", numbers[0] / REQUEST, numbers[1] / REQUEST),
        Bound("tokens", numbers[2] / TOKEN, numbers[3] / TOKEN),
    )


def _used(taken: Sequence[Taken], bound: Bound) -> float:
    """Up to the last grant; what comes back later can no longer be taken."""
    end = max((each.seen.begun for each in taken), default=0)
    changes = [c for each in taken for c in each.changes(bound.name) if c.at <= end]
    least = LARGEST if bound.name == "tokens" else 1
    return round(windows.used(changes, bound.burst, bound.rate, least), 4)


def _waited(waits: Iterable[Sequence[float]]) -> dict[str, float]:
    seconds = [wait for each in waits for wait in each]
    tokens = _bounds(WAIT, Workload.INTERACTIVE)[1]
    refill = LARGEST / tokens.rate / 1_000_000
    return {
        "samples": len(seconds),
        "p50": _ratio(percentile(seconds, 0.5), refill),
        "p99": _ratio(percentile(seconds, 0.99), refill),
    }


def _cost(answers: Sequence[dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    """Round trips of the steps as ratios to the floor's, at the same percentile."""
    times = {
        name: [second for each in answers for second in each[name]]
        for name in ("floor", "reserve", "settle")
    }
    return {
        name: {
            label: _ratio(percentile(times[name], share), percentile(times["floor"], share))
            for label, share in (("p50", 0.5), ("p99", 0.99))
        }
        for name in ("reserve", "settle")
    }


def _ratio(amount: float, floor: float) -> float:
    return round(amount / floor, 3) if floor else 0.0


async def _create(url: str, pools: dict[str, Limits]) -> None:
    for name, limits in pools.items():
        bucket = SharedBucket.connect(url, name, limits, decision_timeout=OPENS, local_share=0)
        await bucket.check()
        await bucket.close()


def _answer(member: subprocess.Popen[str]) -> Any:  # noqa: ANN401 - what the order's part returns
    return json.loads(_line(member))


def _line(member: subprocess.Popen[str]) -> str:
    line = member.stdout.readline() if member.stdout else ""
    if not line:
        raise SystemExit("a process of the benchmark has ended")
    return line


def readable(runs: dict[str, dict[str, Any]]) -> str:
    """The same for people, a line a number."""
    lines = []
    for count, run in runs.items():
        over = sum(value for part in run["overshoot"].values() for value in part.values())
        cost = run["cost"]
        lines += [
            f"{count} processes",
            f"  overshoot, all windows and dimensions   {over:g}",
            *(f"  used of {name:31} {share:.2%}" for name, share in run["utilisation"].items()),
            *(
                f"  {step:8} / empty script, p50 and p99    "
                f"{cost[step]['p50']:.2f}  {cost[step]['p99']:.2f}"
                for step in cost
            ),
            f"  decisions / empty scripts in a second   {run['throughput']:.2f}",
            f"  interactive p99 wait / own refill       {run['interactive_wait']['p99']:.2f}",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
