"""A process of its own that draws on pools.

`hold` keeps every place of HOLD. `work` reads plans, a line each, and runs the attempts of each.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, field

import structlog

from capacity import CapacityUnavailable, Limits, SharedBucket, Workload
from chassis.errors import Exhausted
from tests.capacity import pool

HOLD = Limits(60_000, 1_001, 3, 100, 0, token_burst=1_000)
LOAD = Limits(3_000, 60_000, 6, 50, request_burst=20, token_burst=1_000)
LEASE = 0.6
WORKERS = 8

# kind, class, amount, and that it happened between these two moments
Event = tuple[str, str, int, float, float]


@dataclass(frozen=True)
class Plan:
    """What one process does; times are seconds.

    A worker that was refused asks again after `pause`: fast enough to find all that there is.
    """

    url: str
    limits: Limits = LOAD
    seconds: float = 1.5
    seed: int = 0
    classes: list[str] = field(default_factory=lambda: list(Workload))
    largest: int = 50
    max_wait: float = 0
    pause: float = 0.002
    bucket: dict[str, float] = field(default_factory=dict)
    clock_ahead: float = 0

    def line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def plan(text: str) -> Plan:
    words = json.loads(text)
    return Plan(**{**words, "limits": Limits(**words["limits"])})


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


async def load(plan: Plan) -> None:
    """Say when it begins, run attempts, then print what each took and gave back."""
    options = {"decision_timeout": 5, "local_share": 0, **plan.bucket}
    bucket = SharedBucket.connect(plan.url, pool.NAME, plan.limits, **options)  # type: ignore[arg-type] # from JSON
    crew = Crew(bucket, plan, random.Random(plan.seed))
    tell("begun")
    await asyncio.gather(*(crew.work() for _ in range(WORKERS)))
    await bucket.close()
    tell(json.dumps(crew.events))


class Crew:
    def __init__(self, bucket: SharedBucket, plan: Plan, draw: random.Random) -> None:
        self.bucket, self.plan, self.draw = bucket, plan, draw
        self.events: list[Event] = []
        self.end = time.monotonic() + plan.seconds

    async def work(self) -> None:
        while time.monotonic() < self.end:
            await self.attempt(Workload(self.draw.choice(self.plan.classes)))

    async def attempt(self, workload: Workload) -> None:
        estimate = self.draw.randrange(1, self.plan.largest)
        used = self.draw.choice([estimate, self.draw.randrange(0, estimate + 1), estimate + 5])
        max_wait = min(self.plan.max_wait, self.end - time.monotonic())
        sent = time.monotonic()
        try:
            async with self.bucket.reserve(estimate, workload, max_wait) as reservation:
                begun = time.monotonic()
                self.tell("charge", workload, estimate, sent, begun)
                self.tell("request", workload, 1, sent, begun)
                self.tell("local" if reservation.local else "shared", workload, 1, sent, begun)
                await asyncio.sleep(self.draw.random() / 50)
                reservation.report(used)
                ended = time.monotonic()
        except (Exhausted, CapacityUnavailable):
            self.tell("refusal", workload, 1, sent, time.monotonic())
            await asyncio.sleep(self.plan.pause)
            return
        self.tell("place", workload, 1, begun, ended)
        kind = "refund" if used < estimate else "charge"
        self.tell(kind, workload, abs(estimate - used), ended, time.monotonic())

    def tell(self, kind: str, workload: Workload, amount: int, since: float, until: float) -> None:
        self.events.append((kind, workload, amount, since, until))


@contextmanager
def wrong_clock(seconds: float) -> Iterator[None]:
    """What this process takes for the time of day."""
    right = time.time
    time.time = lambda: right() + seconds
    yield
    time.time = right


def work() -> None:
    for line in sys.stdin:
        order = plan(line)
        with wrong_clock(order.clock_ahead):
            asyncio.run(load(order))


if __name__ == "__main__":
    # What is printed is for the test alone.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    if sys.argv[1] == "hold":
        asyncio.run(hold(sys.argv[2]))
    else:
        work()
