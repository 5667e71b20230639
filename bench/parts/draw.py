"""A process that draws on the pool as it is told, one JSON line in and one out for each order."""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop
from redis.asyncio import Redis

from capacity import CapacityRefused, Limits, Reservation, SharedBucket, Workload
from capacity.store import connect

PATIENCE = 5.0  # seconds that a decision may take on a crowded machine
WORKERS = 32  # of both classes, over all processes
POLL = 0.01
HOLD = 0.02  # seconds that an attempt lasts at most
SLICE = 0.25  # seconds
AT_ONCE = 16  # calls that one process has on their way when it measures throughput
EMPTY = "return 1"

Order = dict[str, Any]


def bucket(order: Order, client: Redis | None = None) -> SharedBucket:
    return SharedBucket(
        client or connect(order["url"], PATIENCE),
        order["pool"],
        Limits(**order["limits"]),
        decision_timeout=PATIENCE,
        local_share=0,
    )


async def saturate(order: Order, draw: random.Random) -> object:
    """Take all there is with both classes; every grant: id, class, tokens, tokens used or None."""
    pool, grants, end = bucket(order), list[tuple[object, ...]](), _end(order)

    async def work(workload: Workload) -> None:
        while time.monotonic() < end:
            tokens = draw.randrange(1, order["largest"] + 1)
            used = draw.choice([tokens, draw.randrange(1, tokens + 1), None])
            try:
                async with _room(pool, tokens, workload, end) as reservation:
                    grants.append((reservation.id, workload, tokens, used))
                    await asyncio.sleep(draw.uniform(0, HOLD))
                    if used is not None:
                        reservation.report(used)
            except CapacityRefused:
                await asyncio.sleep(POLL)

    each = max(1, WORKERS // 2 // order["processes"])
    await _until(order["start"])
    await asyncio.gather(*(work(workload) for workload in Workload for _ in range(each)))
    await pool.close()
    return grants


def _room(pool: SharedBucket, tokens: int, workload: Workload, end: float) -> Any:  # noqa: ANN401 - a context of a reservation, by either way
    if workload is Workload.BATCH:
        return pool.acquire(tokens, workload, end)
    return pool.reserve(tokens, workload)


async def wait(order: Order, draw: random.Random) -> object:
    """How long interactive attempts wait, in seconds, while batch takes all that it can get."""
    pool, waits, end = bucket(order), list[float](), _end(order)
    tokens = order["largest"]

    async def batch() -> None:
        while time.monotonic() < end:
            try:
                async with pool.acquire(tokens, Workload.BATCH, end):
                    await asyncio.sleep(draw.uniform(0, HOLD))
            except CapacityRefused:
                return

    async def interactive() -> None:
        while time.monotonic() < end:
            await asyncio.sleep(draw.uniform(0.5, 1.5) * order["every"])
            began = time.monotonic()
            async with pool.reserve(tokens, Workload.INTERACTIVE, PATIENCE):
                waits.append(time.monotonic() - began)

    await _until(order["start"])
    await asyncio.gather(interactive(), *(batch() for _ in range(WORKERS // order["processes"])))
    await pool.close()
    return waits


async def cost(order: Order, _: random.Random) -> object:
    """Seconds of single calls, turn by turn over one connection."""
    steps = await _Steps.over(order)
    times: dict[str, list[float]] = {"floor": [], "reserve": [], "settle": []}
    await _until(order["start"])
    end = _end(order)
    while time.monotonic() < end:
        reservation = Reservation(Workload.INTERACTIVE, order["largest"])
        for name, step in (
            ("floor", steps.floor),
            ("reserve", lambda held=reservation: steps.reserve(held)),
            ("floor", steps.floor),
            ("settle", lambda held=reservation: steps.settle(held)),
        ):
            began = time.perf_counter()
            await step()
            times[name].append(time.perf_counter() - began)
    await steps.pool.close()
    return times


async def throughput(order: Order, _: random.Random) -> object:
    """How many calls of each kind ended, in slices of time that all processes share."""
    steps = await _Steps.over(order)
    counts = {"floor": 0, "decisions": 0}

    async def floor() -> None:
        await steps.floor()
        counts["floor"] += 1

    async def decisions() -> None:
        reservation = Reservation(Workload.INTERACTIVE, 1)
        await steps.reserve(reservation)
        await steps.settle(reservation)
        counts["decisions"] += 2

    await _until(order["start"])
    for slice_ in range(max(2, round(order["seconds"] / SLICE))):
        until = order["start"] + (slice_ + 1) * SLICE
        step = (floor, decisions)[slice_ % 2]
        await asyncio.gather(*(_repeat(step, until) for _ in range(AT_ONCE)))
    await steps.pool.close()
    return counts


async def _repeat(step: Callable[[], Awaitable[None]], until: float) -> None:
    while time.monotonic() < until:
        await step()


class _Steps:
    """The pool's steps and the floor, an empty script, over the same client."""

    def __init__(self, pool: SharedBucket, redis: Redis, empty: str) -> None:
        self.pool = pool
        self._store = pool._store  # noqa: SLF001 - the step alone, without its bookkeeping
        self._redis = redis
        self._empty = empty

    @classmethod
    async def over(cls, order: Order) -> "_Steps":
        redis = connect(order["url"], PATIENCE)
        return cls(bucket(order, redis), redis, await redis.script_load(EMPTY))

    async def floor(self) -> None:
        await self._redis.evalsha(self._empty, 0)

    async def reserve(self, reservation: Reservation) -> None:
        await self._store.reserve(reservation)

    async def settle(self, reservation: Reservation) -> None:
        reservation.report(reservation.tokens)
        await self._store.settle(reservation.member, reservation.settlement())


def _end(order: Order) -> float:
    return float(order["start"] + order["seconds"])


async def _until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


ORDERS = {"saturate": saturate, "wait": wait, "cost": cost, "throughput": throughput}


def main() -> None:
    draw = random.Random(sys.argv[1])  # noqa: S311 - sizes and pauses, the same in every run
    # Unbuffered standard output loses the rest of a line that is larger than the pipe.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            answer = uvloop.run(ORDERS[order["do"]](order, draw))
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
