"""A bucket that closes with the test, and what is asked of it again and again."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from capacity import CapacityUnavailable, Limits, Mode, SharedBucket, Workload
from chassis.errors import Unavailable
from tests.capacity import pool

LOOK_EVERY = 0.005  # seconds


@asynccontextmanager
async def bucket(url: str, limits: Limits, **options: Any) -> AsyncIterator[SharedBucket]:  # noqa: ANN401 - passed on
    """Its time limit is ample, so that a busy machine is no outage."""
    made = SharedBucket.connect(
        url, pool.NAME, limits, **{"decision_timeout": 5, "local_share": 0, **options}
    )
    try:
        yield made
    finally:
        await made.close()


async def until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait for what a server holds, or a task of the bucket's own brings about."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - neither can set an event
            await asyncio.sleep(LOOK_EVERY)


async def refused(made: SharedBucket) -> tuple[Unavailable, float]:
    """The error, and the seconds it took."""
    started = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        await made.reserve(1, Workload.INTERACTIVE).__aenter__()
    return caught.value, time.monotonic() - started


async def reserve_soon(made: SharedBucket, seconds: float) -> None:
    """One attempt by way of Redis, however often a busy machine made it look lost before."""
    deadline = time.monotonic() + seconds
    shared = False
    while not shared:
        await until(lambda: made.mode is Mode.SHARED, deadline - time.monotonic())
        with contextlib.suppress(CapacityUnavailable):
            async with made.acquire(1, Workload.INTERACTIVE, deadline) as reservation:
                shared = not reservation.local
