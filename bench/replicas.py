"""Many replicas, one allowance: what a provider sees when real processes share the bucket.

The provider admits everybody and writes down who came, by a clock of its own; more is asked than
the allowance holds. Loads: `killed`, where after a steady time some replicas end by SIGKILL, and
`outage`, where Redis is stopped, goes on, is killed and comes back empty.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from redis import Redis

from bench.parts import arrivals, house
from bench.parts.house import House
from bench.parts.load import Load
from bench.parts.rows import Reach, row
from capacity import Limits
from capacity.bucket import LEASE, LOCAL_SHARE
from capacity.pool import MICROSECONDS

PROCESSES = 8
SECONDS = 10.0
KILLED = 3
RUNNING = "sluice:{answers}:running"  # the pool's leases
LOOK_EVERY = 0.05
SETTLED = 3.0  # seconds after which what still holds a place belonged to a killed replica
LIMITS = Limits(
    requests_per_minute=1_200, tokens_per_minute=150_000, in_flight=12, max_reservation=500
)

Report = dict[str, Any]
# What happens during the load, for so many seconds at least, and what is to tell of it.
Course = Callable[[House, float], Awaitable[Report]]


@dataclass(frozen=True, slots=True)
class Variant:
    """`longest` is seconds of the provider's answers."""

    limits: Limits
    longest: float
    course: Course


async def killed(running: House, seconds: float) -> Report:
    """Places of the dead come back when their leases lapse."""
    await asyncio.sleep(seconds)
    replicas = list(running.replicas.values())
    dying = replicas[: min(KILLED, len(replicas) - 1)]
    steady_until = time.monotonic_ns() // 1_000
    for process in dying:
        process.kill()
    began = time.monotonic()
    with running.redis.client() as client:
        held, at_last = await _lapsed(client, began)
    return {
        "steady_until": steady_until,
        "killed": len(dying),
        "places_held": held,
        "back_after_to_lease": round((at_last - began) / LEASE, 2) if held else 0,
    }


async def _lapsed(client: Redis, began: float) -> tuple[int, float]:
    """How many places the dead held, and when the last of them came back."""
    left = await asyncio.to_thread(_live, client)
    held, at_last = 0, began
    while left := left & await asyncio.to_thread(_live, client):
        if time.monotonic() - began > SETTLED:
            held = max(held, len(left))
        at_last = time.monotonic()
        if at_last - began > 3 * LEASE:
            break
        await asyncio.sleep(LOOK_EVERY)
    return held, at_last


def _live(client: Redis) -> set[bytes]:
    """The attempts that hold a place now."""
    seconds, microseconds = client.time()
    now = seconds * MICROSECONDS + microseconds
    return set(cast("list[bytes]", client.zrangebyscore(RUNNING, f"({now}", "+inf")))


async def outage(running: House, seconds: float) -> Report:
    """Stopped for a fifth of the time, then killed and away for another."""
    redis, part, back = running.redis, seconds / 5, list[float]()
    await asyncio.sleep(part)
    redis.pause()
    await asyncio.sleep(part)
    back.append(time.time())
    redis.go_on()
    await asyncio.sleep(part)
    await asyncio.to_thread(redis.kill)
    await asyncio.sleep(part)
    back.append(time.time())
    await asyncio.to_thread(redis.start)
    await asyncio.sleep(part + SETTLED)
    return {"shared_again": [_restored(running, moment) for moment in back]}


def _restored(running: House, moment: float) -> Report:
    """How many replicas found the shared bucket again, and the longest that one took."""
    delays = []
    for port in running.replicas:
        times = [at for at in _times(running, port) if at >= moment]
        delays += [min(times) - moment] if times else []
    return {"replicas": len(delays), "longest_seconds": round(max(delays, default=0.0), 1)}


def _times(running: House, port: int) -> Sequence[float]:
    lines = running.log(port).read_text().splitlines()
    events = [json.loads(line) for line in lines if '"capacity_restored"' in line]
    return [datetime.fromisoformat(event["time"]).timestamp() for event in events]


VARIANTS = {
    "killed": Variant(LIMITS, 1.2, killed),
    # So many places that each process has one of those set aside for the time without Redis.
    "outage": Variant(replace(LIMITS, in_flight=160), 0.5, outage),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each load")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="replicas")
    parser.add_argument("--loads", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    given = parser.parse_args()
    loads = {name: measure(VARIANTS[name], given.processes, given.seconds) for name in given.loads}
    report = {
        "seconds": given.seconds,
        "processes": given.processes,
        "loads": loads,
        "rows": [
            row(f"calls over the allowance, replicas {name}", run["over"], "", Reach(0, "figure"))
            for name, run in loads.items()
        ],
    }
    print(json.dumps(report) if given.json else readable(loads))


def measure(variant: Variant, processes: int, seconds: float) -> Report:
    with house.running(processes, variant.limits, variant.longest) as running:
        load = Load(list(running.replicas), random.Random(1))  # noqa: S311 - sizes and pauses
        begin = time.monotonic_ns() // 1_000
        told = asyncio.run(_under_load(load, variant.course(running, seconds)))
        end = told.pop("steady_until", time.monotonic_ns() // 1_000)
        seen = arrivals.read(running.arrivals)
    return {
        "arrivals": len(seen),
        **arrivals.held(seen, variant.limits),
        # The shared buckets hold what is not set aside for the time without Redis.
        "used": arrivals.used(seen, variant.limits.shared(LOCAL_SHARE), (begin, end)),
        "outcomes": dict(load.outcomes),
        **told,
    }


async def _under_load(load: Load, course: Awaitable[Report]) -> Report:
    stop = asyncio.Event()
    working = asyncio.create_task(load.run(stop))
    told = await course
    stop.set()
    await working
    return told


def readable(loads: dict[str, Report]) -> str:
    """The same for people: what was most, and what it may be."""
    lines = []
    for name, run in loads.items():
        lines += [f"{name}: {run['arrivals']} calls, over the allowance by {run['over']:g}"]
        for kind in ("requests", "tokens"):
            lines += [
                f"  {kind:8} in {window:>4}   {most:>9,.0f} of {may:,.0f}"
                for window, (most, may) in run[kind].items()
            ]
        most, may = run["in_flight"]
        lines += [f"  at once            {most:>9} of {may}"]
        lines += [f"  tokens used        {run['used']['tokens']:.1%}"]
        told = {"places_held", "back_after_to_lease", "shared_again"} & run.keys()
        lines += [f"  {fact:18} {run[fact]}" for fact in sorted(told)]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
