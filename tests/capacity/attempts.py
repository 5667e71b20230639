"""A process of its own that draws on the pool: `hold` keeps places, `load` runs many attempts."""

import asyncio
import json
import random
import sys
import time
from contextlib import AsyncExitStack

from capacity import CapacityRefused, Limits, SharedBucket, Workload
from tests.capacity import pool

HOLD = Limits(60_000, 1_001, 3, 100, 0, token_burst=1_000)
LOAD = Limits(3_000, 60_000, 6, 50, request_burst=20, token_burst=1_000)
LEASE = 0.6
WORKERS = 8

Event = tuple[str, str, int, float, float]


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def hold(url: str) -> None:
    """Take every place of HOLD, say so, and keep them."""
    bucket = SharedBucket.connect(
        url, pool.NAME, HOLD, decision_timeout=5, lease=LEASE, local_share=0
    )
    async with AsyncExitStack() as held:
        for _ in range(HOLD.in_flight):
            await held.enter_async_context(bucket.reserve(100, Workload.INTERACTIVE))
        tell("held")
        await asyncio.Event().wait()


async def load(url: str, seconds: float, seed: int) -> None:
    """Run attempts, then print what each took and gave back: (kind, class, amount, from, to)."""
    bucket = SharedBucket.connect(url, pool.NAME, LOAD, decision_timeout=5, local_share=0)
    draw, events, end = random.Random(seed), list[Event](), time.monotonic() + seconds

    async def worker() -> None:
        while time.monotonic() < end:
            workload = draw.choice(list(Workload))
            await attempt(bucket, draw, workload, events)

    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    await bucket.close()
    tell(json.dumps(events))


async def attempt(
    bucket: SharedBucket, draw: random.Random, workload: Workload, events: list[Event]
) -> None:
    estimate = draw.randrange(1, 50)
    used = draw.choice([estimate, draw.randrange(0, estimate + 1), estimate + 5])
    sent = time.monotonic()
    try:
        async with bucket.reserve(estimate, workload) as reservation:
            begun = time.monotonic()
            events.append(("charge", workload, estimate, sent, begun))
            events.append(("request", workload, 1, sent, begun))
            await asyncio.sleep(draw.random() / 50)
            reservation.report(used)
            ended = time.monotonic()
    except CapacityRefused:
        await asyncio.sleep(0.002)
        return
    events.append(("place", workload, 1, begun, ended))
    kind = "refund" if used < estimate else "charge"
    events.append((kind, workload, abs(estimate - used), ended, time.monotonic()))


if __name__ == "__main__":
    mode, url, *rest = sys.argv[1:]
    asyncio.run(hold(url) if mode == "hold" else load(url, float(rest[0]), int(rest[1])))
