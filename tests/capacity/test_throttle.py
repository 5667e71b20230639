"""What one caller heard from the provider, and what all callers make of it, on a real server."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from redis import Redis

from capacity import (
    CapacityCircuitOpen,
    CapacityRefused,
    CircuitState,
    Limits,
    SharedBucket,
    Workload,
)
from capacity.circuit import FAILURES
from tests.capacity import pool
from tests.capacity.buckets import bucket, until
from tests.capacity.server import Server

BATCH, INTERACTIVE = Workload.BATCH, Workload.INTERACTIVE
LIMITS = Limits(60_000, 61_000, 100, 100, token_burst=1_000)


@pytest.fixture
async def pair(
    shared_server: Server, client: Redis
) -> AsyncIterator[tuple[SharedBucket, SharedBucket]]:
    pool.fill(client)
    url = shared_server.url
    async with bucket(url, LIMITS, lease=1) as one, bucket(url, LIMITS, lease=1) as other:
        yield one, other


async def refusal(made: SharedBucket, workload: Workload) -> tuple[str, float | None]:
    with pytest.raises(CapacityRefused) as caught:
        await made.reserve(1, workload).__aenter__()
    return caught.value.reason, caught.value.retry_after


@pytest.mark.parametrize("workload", list(Workload))
async def test_every_process_refuses_in_its_next_call(
    pair: tuple[SharedBucket, SharedBucket], workload: Workload
) -> None:
    one, other = pair
    async with one.reserve(1, INTERACTIVE):
        await one.cool_down(60)
        await other.cool_down(1)
        reason, wait = await refusal(other, workload)
    assert reason == "CAPACITY_COOLDOWN"
    assert wait == pytest.approx(60, abs=3)


async def test_no_time_at_all_is_no_cooldown(pair: tuple[SharedBucket, SharedBucket]) -> None:
    for seconds in (0, -1, float("nan")):
        await pair[0].cool_down(seconds)
    async with pair[1].reserve(1, INTERACTIVE):
        assert (await pair[1].snapshot()).cooldown == 0


async def test_an_absurd_time_is_an_hour(pair: tuple[SharedBucket, SharedBucket]) -> None:
    await pair[0].cool_down(1e12)
    assert (await pair[1].snapshot()).cooldown == pytest.approx(3_600, abs=3)


async def test_who_waits_for_a_start_does_not_start_in_a_cooldown(
    pair: tuple[SharedBucket, SharedBucket], client: Redis
) -> None:
    one, other = pair
    async with other.reserve(1_000, INTERACTIVE):
        waiting = asyncio.create_task(other.reserve(300, INTERACTIVE, max_wait=5).__aenter__())
        await until(lambda: pool.level(client).waiting == 1, 5)
        await one.cool_down(60)
        with pytest.raises(CapacityRefused) as caught:
            await waiting
    assert caught.value.reason == "CAPACITY_COOLDOWN"
    assert caught.value.retry_after == pytest.approx(60, abs=3)
    level = pool.level(client)
    assert (level.places, level.waiting, level.tokens) == (0, 0, 0)


async def test_a_cooldown_outlives_the_pools_state(
    pair: tuple[SharedBucket, SharedBucket], client: Redis
) -> None:
    await pair[0].cool_down(60)
    client.flushall()
    await until(lambda: bool(client.exists(pool.STATE)), 5)
    assert pool.level(client).cool_end > pool.level(client).opens
    assert (await refusal(pair[1], INTERACTIVE))[0] == "CAPACITY_COOLDOWN"


async def test_starts_climb_after_the_end(shared_server: Server, client: Redis) -> None:
    """A burst of full buckets would be 1,000 requests; half a second of the ramp is 125."""
    pool.fill(client)
    limits = Limits(61_000, 1e8, 100, 1, 0, request_burst=1_000)
    async with bucket(shared_server.url, limits, ramp_seconds=1) as made:
        await made.cool_down(0.2)
        end, starts = time.monotonic() + 0.2, list[float]()
        while time.monotonic() < end + 0.5:
            try:
                async with made.reserve(1, INTERACTIVE):
                    starts.append(time.monotonic() - end)
            except CapacityRefused as refused:
                await asyncio.sleep(min(refused.retry_after or 0, 0.01))
    assert starts
    assert starts[0] >= -0.01
    for number, start in enumerate(starts):
        assert number <= 1_000 * max(start + 0.02, 0) ** 2 / 2


async def test_an_open_circuit_refuses_before_redis_is_asked(
    pair: tuple[SharedBucket, SharedBucket], client: Redis
) -> None:
    one, other = pair
    for _ in range(FAILURES):
        one.unavailable()
    before = pool.dump(client)
    with pytest.raises(CapacityCircuitOpen):
        await one.reserve(1, INTERACTIVE).__aenter__()
    assert pool.dump(client) == before
    assert (await one.snapshot()).circuit is CircuitState.OPEN
    async with other.reserve(1, INTERACTIVE):
        one.available()
    async with one.reserve(1, INTERACTIVE):
        assert (await one.snapshot()).circuit is CircuitState.CLOSED


async def test_batch_waits_until_the_circuit_is_probed(
    pair: tuple[SharedBucket, SharedBucket],
) -> None:
    one, _ = pair
    for _ in range(FAILURES):
        one.unavailable()
    opened = time.monotonic()
    async with one.acquire(1, BATCH, opened + 20):
        assert time.monotonic() - opened >= 2
        with pytest.raises(CapacityCircuitOpen):
            await one.reserve(1, INTERACTIVE).__aenter__()
    async with one.reserve(1, INTERACTIVE):
        assert (await one.snapshot()).circuit is CircuitState.PROBING


async def test_a_probe_that_is_refused_leaves_room_for_the_next(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    async with bucket(shared_server.url, LIMITS) as made:
        for _ in range(FAILURES):
            made.unavailable()
        await made.cool_down(60)
        made._circuit._until = time.monotonic()
        for _ in range(2):
            assert (await refusal(made, INTERACTIVE))[0] == "CAPACITY_COOLDOWN"
