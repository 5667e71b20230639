"""A bucket that closes with the test, and what is asked of it again and again."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from capacity import CapacityUnavailable, Limits, SharedBucket, Workload
from chassis.errors import Unavailable
from tests.capacity import pool


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
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - a server cannot set an event
            await asyncio.sleep(0.005)


async def refused(made: SharedBucket) -> tuple[Unavailable, float]:
    """The error, and the seconds it took."""
    started = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        await made.reserve(1, Workload.INTERACTIVE).__aenter__()
    return caught.value, time.monotonic() - started


async def reserve_soon(made: SharedBucket, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            async with made.acquire(1, Workload.INTERACTIVE, deadline):
                return
        except CapacityUnavailable:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.01)
