"""Redis is lost: never open, in force at once, and back by itself."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest
from redis import Redis
from structlog.testing import capture_logs

from capacity import (
    CapacityRefused,
    CapacityUnavailable,
    Limits,
    Mode,
    SharedBucket,
    Workload,
)
from tests.capacity import pool
from tests.capacity.buckets import bucket, refused, reserve_soon, until
from tests.capacity.server import Server

BATCH, INTERACTIVE = Workload.BATCH, Workload.INTERACTIVE
# A share of 60 requests, 60,000 tokens a minute and one place: none for a second after the loss.
LIMITS = Limits(6_000, 6_000_000, 10, 100)
SHARED = {"decision_timeout": 0.05, "lease": 1, "local_share": 0.1, "max_processes": 1}
# What a decision may take on a machine that is busy with other things, beside its own limit.
BUSY = 0.4
BACK_WITHIN = 2.0


@pytest.fixture
async def made(own_server: Server) -> AsyncIterator[SharedBucket]:
    async with bucket(own_server.url, LIMITS, **SHARED) as one:
        await reserve_soon(one, 5)
        assert one.mode is Mode.SHARED
        yield one


def lose(server: Server, how: str) -> None:
    if how == "killed":
        server.kill()
    else:
        server.stop()


def bring_back(server: Server, how: str) -> None:
    if how == "killed":
        server.start()
    else:
        server.go_on()


@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_it_is_back_by_itself_without_any_traffic(
    made: SharedBucket, own_server: Server, how: str
) -> None:
    lose(own_server, how)
    with pytest.raises(CapacityRefused):
        await made.reserve(1, INTERACTIVE).__aenter__()
    assert made.mode is Mode.LOCAL_SHARE
    bring_back(own_server, how)
    started = time.monotonic()
    await until(lambda: made.mode is Mode.SHARED, BACK_WITHIN)
    assert time.monotonic() - started < BACK_WITHIN
    await reserve_soon(made, 5)


@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_no_decision_takes_longer_than_its_limit(
    made: SharedBucket, own_server: Server, how: str
) -> None:
    lose(own_server, how)
    for _ in range(20):
        started = time.monotonic()
        with pytest.raises(CapacityRefused):
            await made.reserve(1, INTERACTIVE).__aenter__()
        assert time.monotonic() - started < 0.05 + BUSY
    bring_back(own_server, how)


async def test_the_local_share_starts_empty_and_is_settled_locally(
    made: SharedBucket, own_server: Server
) -> None:
    own_server.kill()
    with pytest.raises(CapacityRefused) as caught:
        await made.reserve(1, INTERACTIVE).__aenter__()
    assert caught.value.reason == "CAPACITY_REQUESTS"
    async with made.acquire(10, INTERACTIVE, time.monotonic() + 5) as reservation:
        assert reservation.local
        assert (await made.snapshot()).in_flight == {"interactive": 1, "batch": 0}
        with pytest.raises(CapacityRefused, match="own share"):
            await made.reserve(1, BATCH).__aenter__()
        own_server.start()
        await until(lambda: made.mode is Mode.SHARED, BACK_WITHIN)
    with Redis.from_url(own_server.url) as client:
        assert not client.exists(pool.LEASES)
        assert pool.level(client).places == 0


async def test_more_than_the_local_share_holds_waits_for_redis(
    made: SharedBucket, own_server: Server
) -> None:
    own_server.kill()
    with pytest.raises(CapacityUnavailable):
        await made.reserve(30_001, INTERACTIVE).__aenter__()


async def test_a_running_attempt_is_registered_as_soon_as_redis_is_back(
    made: SharedBucket, own_server: Server
) -> None:
    async with made.acquire(1, INTERACTIVE, time.monotonic() + 5) as reservation:
        own_server.kill()
        await until(lambda: made.mode is Mode.LOCAL_SHARE, 2)
        own_server.start()
        await until(lambda: made.mode is Mode.SHARED, BACK_WITHIN)
        with Redis.from_url(own_server.url) as client:
            assert pool.names(client) == [reservation.id]
    with Redis.from_url(own_server.url) as client:
        assert pool.level(client).places == 0


async def test_what_ended_meanwhile_is_settled_when_redis_is_back(
    made: SharedBucket, own_server: Server
) -> None:
    with Redis.from_url(own_server.url) as client:
        async with made.acquire(1, INTERACTIVE, time.monotonic() + 5):
            own_server.stop()
        own_server.go_on()
        await until(lambda: made.mode is Mode.SHARED, BACK_WITHIN)
        await until(lambda: pool.level(client).places == 0, 2)
        assert not made._unsettled


async def test_without_a_share_it_is_closed(own_server: Server) -> None:
    async with bucket(own_server.url, LIMITS, **{**SHARED, "local_share": 0}) as made:
        await reserve_soon(made, 5)
        own_server.kill()
        error, _ = await refused(made)
        assert error.reason == "CAPACITY_UNAVAILABLE"
        assert made.mode is Mode.CLOSED
        assert (await made.snapshot()).pool.places == 0


async def test_it_is_told_once_and_when_it_is_over(made: SharedBucket, own_server: Server) -> None:
    with capture_logs() as logs:
        own_server.kill()
        for _ in range(5):
            with pytest.raises(CapacityRefused):
                await made.reserve(1, INTERACTIVE).__aenter__()
        own_server.start()
        await until(lambda: made.mode is Mode.SHARED, BACK_WITHIN)
    told = [(line["event"], line.get("mode")) for line in logs]
    assert told == [("capacity_lost", "local_share"), ("capacity_restored", None)]


async def test_a_cooldown_holds_while_redis_is_lost_and_after(
    made: SharedBucket, own_server: Server
) -> None:
    own_server.kill()
    with pytest.raises(CapacityRefused):
        await made.reserve(1, INTERACTIVE).__aenter__()
    await made.cool_down(60)
    with pytest.raises(CapacityRefused) as caught:
        await made.reserve(1, INTERACTIVE).__aenter__()
    assert caught.value.reason == "CAPACITY_COOLDOWN"
    own_server.start()
    await until(lambda: made.mode is Mode.SHARED, BACK_WITHIN)
    async with bucket(own_server.url, LIMITS, **SHARED) as other:
        with pytest.raises(CapacityRefused) as caught:
            await other.reserve(1, INTERACTIVE).__aenter__()
    assert caught.value.reason == "CAPACITY_COOLDOWN"


async def test_a_primary_that_was_demoted_admits_nothing(
    made: SharedBucket, own_server: Server, free_port: Callable[[], int]
) -> None:
    with Redis.from_url(own_server.url) as client:
        client.replicaof("127.0.0.1", free_port())
        with pytest.raises(CapacityRefused, match="own share"):
            await made.reserve(1, INTERACTIVE).__aenter__()
        assert made.mode is Mode.LOCAL_SHARE
        client.replicaof("NO", "ONE")
    await until(lambda: made.mode is Mode.SHARED, BACK_WITHIN)
    await reserve_soon(made, 5)


async def test_a_caller_that_waits_for_its_start_is_not_lost_with_redis(
    made: SharedBucket, own_server: Server
) -> None:
    async with bucket(own_server.url, Limits(60_000, 1_112, 10, 100), **SHARED) as slow:
        with Redis.from_url(own_server.url) as client:
            seconds, microseconds = client.time()
            pool.empty(client, seconds * pool.SECOND + microseconds)
            # 900 tokens a minute: a start in 0.2 s
            waiting = asyncio.create_task(slow.reserve(3, INTERACTIVE, 10).__aenter__())
            await until(lambda: pool.level(client).waiting == 1, 5)
        own_server.kill()
        with pytest.raises(CapacityRefused, match="own share"):
            await waiting
        own_server.start()
        await until(lambda: slow.mode is Mode.SHARED, BACK_WITHIN)


async def test_closing_while_redis_is_lost_waits_for_nobody(own_server: Server) -> None:
    async with bucket(own_server.url, LIMITS, **SHARED) as made:
        await reserve_soon(made, 5)
        own_server.kill()
        with pytest.raises(CapacityRefused):
            await made.reserve(1, INTERACTIVE).__aenter__()
        started = time.monotonic()
    assert time.monotonic() - started < BUSY
