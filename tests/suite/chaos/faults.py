"""What happens to the suite's processes, and how long it takes until all is whole again."""

import asyncio
import contextlib
import math
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from local.suite import probe
from tests.suite.conftest import PARTS, Running, alive

# A node that is drained ends several processes at once.
ON_ONE_NODE = 3
SHORTEST, LONGEST = 0.5, 4.0  # seconds of a pause
LOOK_EVERY = 0.1
ENDS_WITHIN = 30.0  # seconds that a drain may take
LEFT_ALONE = (0.2, 1.5)  # seconds between what is whole again and the next fault


@dataclass(slots=True)
class Fault:
    """`at` is when it began, `over` when nothing more was done, `whole` when all was well again."""

    kind: str
    parts: Sequence[str]
    at: float
    over: float = 0.0
    whole: float | None = None

    @property
    def recovery(self) -> float:
        """Seconds; infinite where it was waited for in vain."""
        return math.inf if self.whole is None else self.whole - self.over

    def __str__(self) -> str:
        return f"{self.kind} {'+'.join(self.parts)}"


def deck(draw: random.Random) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every kind of fault for every process in some order, and again in another."""
    while True:
        drained = [tuple(draw.sample(PARTS, ON_ONE_NODE)) for _ in PARTS]
        single = product(("kill", "pause", "restart"), ((part,) for part in PARTS))
        cards = [*single, *(("drain", parts) for parts in drained)]
        draw.shuffle(cards)
        yield from cards


async def strike(running: Running, kind: str, parts: Sequence[str], draw: random.Random) -> Fault:
    """`restart` and `drain` end by SIGTERM, and whoever keeps the suite starts them again."""
    pids = running.pids()
    fault = Fault(kind, parts, time.monotonic())
    number = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP}.get(kind, signal.SIGTERM)
    for part in parts:
        os.kill(pids[part], number)
    if kind == "pause":
        try:
            await asyncio.sleep(draw.uniform(SHORTEST, LONGEST))
        finally:
            for part in parts:
                os.kill(pids[part], signal.SIGCONT)
    else:
        # A process that drains still says that it is well.
        await comes(partial(_gone, [pids[part] for part in parts]), ENDS_WITHIN)
    fault.over = time.monotonic() if kind == "pause" else fault.at
    return fault


async def _gone(pids: Sequence[int]) -> bool:
    return not any(map(alive, pids))


async def comes(true: Callable[[], Awaitable[bool]], limit: float) -> float | None:
    """When it came true; None where it did not within `limit` seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit):
            while not await true():  # noqa: ASYNC110 - another process has no event to wait for
                await asyncio.sleep(LOOK_EVERY)
        return time.monotonic()
    return None


async def ready(running: Running) -> bool:
    """Whether every process says so."""
    found = await asyncio.gather(*(probe(part, running.ports[part])() for part in PARTS))
    return all(found)
