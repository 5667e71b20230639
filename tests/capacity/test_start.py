"""Callers that wait for a start in the near future, on a real server."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from redis import Redis

from capacity import CapacityRefused, Limits, SharedBucket, Workload
from capacity.pool import TOKEN
from chassis import deadlines
from chassis.deadlines import Deadline
from tests.capacity import pool
from tests.capacity.buckets import bucket, until
from tests.capacity.server import Server

INTERACTIVE = Workload.INTERACTIVE
# 1,000 tokens a second, of which there are none at first.
LIMITS = Limits(60_000, 61_000, 100, 100, 0, token_burst=1_000)


@pytest.fixture
async def spent(shared_server: Server, client: Redis) -> AsyncIterator[SharedBucket]:
    seconds, microseconds = client.time()
    pool.empty(client, seconds * pool.SECOND + microseconds)
    async with bucket(shared_server.url, LIMITS) as made:
        yield made


async def test_starts_follow_the_rate_in_order_of_arrival(
    spent: SharedBucket, client: Redis
) -> None:
    began, starts = time.monotonic(), list[tuple[int, float]]()

    async def attempt(number: int) -> None:
        async with spent.reserve(50, INTERACTIVE, max_wait=10):
            starts.append((number, time.monotonic() - began))

    attempts = []
    for number in range(10):
        attempts.append(asyncio.create_task(attempt(number)))
        arrived = len(attempts)
        await until(lambda: pool.level(client).waiting + len(starts) >= arrived, 5)  # noqa: B023 - used up at once
    await asyncio.gather(*attempts)
    assert [number for number, _ in starts] == list(range(10))
    assert all(start >= 0.05 * (number + 1) - 0.02 for number, start in starts)
    assert starts[-1][1] < 3


async def test_who_waits_asks_twice_and_no_more(spent: SharedBucket, client: Redis) -> None:
    client.config_resetstat()
    async with spent.reserve(100, INTERACTIVE, max_wait=10):
        calls = client.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert 2 <= calls <= 4  # a begin that comes a little early is told so


async def test_a_wait_beyond_the_longest_is_refused_at_once(spent: SharedBucket) -> None:
    with pytest.raises(CapacityRefused) as caught:
        await spent.reserve(1_000, INTERACTIVE, max_wait=0.5).__aenter__()
    assert caught.value.reason == "CAPACITY_TOKENS"
    assert caught.value.retry_after == pytest.approx(1, abs=0.3)


async def test_nothing_is_promised_beyond_the_callers_deadline(spent: SharedBucket) -> None:
    deadlines.enter(Deadline.after(0.3))
    with pytest.raises(CapacityRefused):
        await spent.reserve(1_000, INTERACTIVE, max_wait=10).__aenter__()


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 10, 20, 40])
async def test_a_caller_that_leaves_before_its_start_gets_everything_back(
    shared_server: Server, client: Redis, steps: int
) -> None:
    pool.fill(client)
    slow = Limits(60_000, 1_001, 100, 100, 0, token_burst=1_000)
    async with bucket(shared_server.url, slow) as made:
        async with made.reserve(1_000, INTERACTIVE):
            pass
        waiting = [asyncio.create_task(wait_long(made)) for _ in range(5)]
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        # One whose reply was still on its way is given back right after.
        await until(lambda: pool.level(client).tokens >= 0, 5)
        level = pool.level(client)
    assert (level.places, level.waiting, level.tokens // TOKEN) == (0, 0, 0)
    assert not client.exists(pool.WAITING)


async def wait_long(made: SharedBucket) -> None:
    async with made.reserve(100, INTERACTIVE, max_wait=100_000):
        raise AssertionError("nothing is refilled")


async def test_debts_beyond_the_longest_wait_end_it(shared_server: Server, client: Redis) -> None:
    pool.fill(client)
    async with bucket(shared_server.url, LIMITS) as made:
        async with made.reserve(1_000, INTERACTIVE) as debtor:
            waiting = asyncio.create_task(made.reserve(200, INTERACTIVE, 1).__aenter__())
            await until(lambda: pool.level(client).waiting == 1, 5)
            debtor.report(6_000)
        with pytest.raises(CapacityRefused) as caught:
            await waiting
        assert caught.value.retry_after is not None
        assert caught.value.retry_after > 1
        level = pool.level(client)
    assert (level.places, level.waiting) == (0, 0)
    assert level.tokens < -4_000 * TOKEN
