"""The bucket as callers use it, on a real server."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
from redis import Redis

from capacity import (
    CapacityRefused,
    CapacityTooLarge,
    Limits,
    Reservation,
    SharedBucket,
    Workload,
)
from capacity.pool import TOKEN
from chassis.errors import Exhausted, InvalidInput
from tests.capacity import pool
from tests.capacity.buckets import bucket, refused, reserve_soon, until
from tests.capacity.server import Server

BATCH, INTERACTIVE = Workload.BATCH, Workload.INTERACTIVE
# Room for ten attempts of 100 tokens; hardly anything is refilled while a test runs.
LIMITS = Limits(1_002, 1_001, 100, 100, 0, request_burst=1_000, token_burst=1_000)
ONE_PLACE = Limits(60_000, 6_000_000, 1, 100)


@pytest.fixture
async def full(shared_server: Server, client: Redis) -> AsyncIterator[SharedBucket]:
    pool.fill(client)
    async with bucket(shared_server.url, LIMITS) as made:
        yield made


def tokens(client: Redis) -> int:
    return pool.level(client).tokens // TOKEN


async def test_a_block_holds_a_place_and_its_tokens(full: SharedBucket, client: Redis) -> None:
    async with full.reserve(100, INTERACTIVE) as reservation:
        assert pool.names(client) == [reservation.id]
        assert tokens(client) == 900
    assert pool.level(client).places == 0
    assert tokens(client) == 900


async def test_a_new_connection_is_asked_for_nothing_but_the_decision(
    full: SharedBucket, client: Redis
) -> None:
    """Each greeting is a round trip more within the time of the first decision."""
    client.config_resetstat()
    async with full.reserve(100, INTERACTIVE):
        pass
    asked = {name for name in client.info("commandstats") if "|" in name or "hello" in name}
    assert asked <= {"cmdstat_config|resetstat"}


async def test_reported_usage_replaces_the_estimate(full: SharedBucket, client: Redis) -> None:
    async with full.reserve(100, INTERACTIVE) as reservation:
        reservation.report(10)
        reservation.report(30)
    assert tokens(client) == 970


async def test_an_attempt_that_failed_in_the_block_is_settled(
    full: SharedBucket, client: Redis
) -> None:
    async def attempt() -> None:
        async with full.reserve(100, INTERACTIVE) as reservation:
            reservation.report(30)
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await attempt()
    assert (pool.level(client).places, tokens(client)) == (0, 970)


async def test_an_attempt_that_never_began_costs_nothing(full: SharedBucket, client: Redis) -> None:
    async with full.reserve(100, INTERACTIVE) as reservation:
        reservation.not_begun()
    level = pool.level(client)
    assert (level.places, level.requests) == (0, LIMITS.numbers()[2])
    assert tokens(client) == 1_000


async def test_forty_at_once_against_room_for_ten_admits_ten(
    full: SharedBucket, client: Redis
) -> None:
    everyone_asked = asyncio.Barrier(40)

    async def attempt() -> str:
        try:
            async with full.reserve(100, INTERACTIVE):
                await everyone_asked.wait()
                return "admitted"
        except CapacityRefused as refusal:
            await everyone_asked.wait()
            return f"{refusal.reason} in {refusal.retry_after or 0:.0f} s"

    outcomes = await asyncio.gather(*(attempt() for _ in range(40)))
    assert sorted(outcomes) == ["CAPACITY_TOKENS in 6000 s"] * 30 + ["admitted"] * 10
    assert pool.level(client).places == 0


async def test_a_refusal_is_an_exhausted_allowance_with_its_reason(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    async with bucket(shared_server.url, ONE_PLACE) as made, made.reserve(1, BATCH):
        with pytest.raises(Exhausted) as caught:
            await made.reserve(1, INTERACTIVE).__aenter__()
    assert (caught.value.reason, caught.value.retry_after) == ("CAPACITY_IN_FLIGHT", None)


async def test_a_new_pool_tells_when_it_opens(shared_server: Server, client: Redis) -> None:
    async with bucket(shared_server.url, ONE_PLACE) as made:
        with pytest.raises(CapacityRefused) as caught:
            await made.reserve(1, INTERACTIVE).__aenter__()
    assert (caught.value.reason, caught.value.retry_after) == ("CAPACITY_REQUESTS", 3.0)


async def test_checking_a_pool_opens_it_and_takes_nothing(
    shared_server: Server, client: Redis
) -> None:
    async with bucket(shared_server.url, ONE_PLACE, lease=0.1) as made:
        await made.check()
        before = pool.dump(client)
        await made.check()
    assert pool.dump(client) == before
    assert pool.level(client).places == 0
    assert not client.exists(pool.LEASES)


async def test_more_than_the_pool_can_hold_is_the_callers_error(full: SharedBucket) -> None:
    with pytest.raises(InvalidInput, match="1001 tokens") as caught:
        await full.reserve(1_001, INTERACTIVE).__aenter__()
    assert isinstance(caught.value, CapacityTooLarge)
    assert caught.value.field == "tokens"


@pytest.mark.parametrize("amount", [0, -1])
async def test_an_attempt_without_an_estimate_is_a_mistake(full: SharedBucket, amount: int) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        await full.reserve(amount, INTERACTIVE).__aenter__()


async def test_usage_below_zero_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        Reservation(INTERACTIVE, 1).report(-1)


@pytest.mark.parametrize("name", ["", "a{b}", "a b", "{}"])
async def test_a_pool_name_that_breaks_the_hash_tag_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^pool: "):
        SharedBucket.connect("redis://127.0.0.1:1", name, ONE_PLACE)


async def test_the_commands_of_two_pools_do_not_meet(
    shared_server: Server, client: Redis, full: SharedBucket
) -> None:
    other = SharedBucket.connect(
        shared_server.url, "other", LIMITS, decision_timeout=5, local_share=0
    )
    with pytest.raises(CapacityRefused):
        await other.reserve(1, INTERACTIVE).__aenter__()
    await other.close()
    async with full.reserve(1, INTERACTIVE):
        assert set(client.keys()) == {
            pool.STATE.encode(),
            pool.LEASES.encode(),
            b"sluice:{other}:pool",
        }


async def test_a_flushed_script_is_loaded_again_unnoticed(
    full: SharedBucket, client: Redis
) -> None:
    client.script_flush()
    async with full.reserve(100, INTERACTIVE) as reservation:
        client.script_flush()
        reservation.report(30)
    assert (pool.level(client).places, tokens(client)) == (0, 970)


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_a_caller_that_leaves_gives_its_place_back_at_once(
    full: SharedBucket, client: Redis, steps: int
) -> None:
    """Left before the reply, in the block, or while it is being settled."""

    async def attempt() -> None:
        async with full.reserve(100, INTERACTIVE) as reservation:
            reservation.not_begun()
            await asyncio.sleep(0)

    await attempt()
    attempts = [asyncio.create_task(attempt()) for _ in range(5)]
    for _ in range(steps):
        await asyncio.sleep(0)
    for task in attempts:
        task.cancel()
    await asyncio.wait(attempts)
    assert (pool.level(client).places, tokens(client)) == (0, 1_000)


async def test_random_attempts_leave_nothing_in_flight(full: SharedBucket, client: Redis) -> None:
    draw = random.Random(7)

    async def attempt(number: int) -> None:
        async with full.reserve(1, draw.choice([BATCH, INTERACTIVE])) as reservation:
            await asyncio.sleep(0)
            if number % 3:
                reservation.report(draw.randrange(3))
            if number % 5 == 0:
                raise ConnectionResetError

    attempts = [asyncio.create_task(attempt(number)) for number in range(90)]
    for task in draw.sample(attempts, 30):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.wait(attempts)
    assert pool.level(client).places == 0
    assert client.keys() == [pool.STATE.encode()]


async def test_a_lease_is_renewed_while_its_attempt_runs(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    async with (
        bucket(shared_server.url, ONE_PLACE, lease=0.3) as holder,
        bucket(shared_server.url, ONE_PLACE, lease=0.3) as other,
    ):
        async with holder.reserve(1, INTERACTIVE):
            with pytest.raises(CapacityRefused, match="in flight"):
                await other.acquire(1, BATCH, time.monotonic() + 1).__aenter__()
        async with other.reserve(1, INTERACTIVE):
            assert pool.level(client).places == 1


async def test_a_running_attempt_registers_again_after_a_flush(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    async with bucket(shared_server.url, ONE_PLACE, lease=0.5) as made:
        async with made.reserve(1, INTERACTIVE) as reservation:
            client.flushall()
            await until(lambda: bool(client.exists(pool.LEASES)), 2)
            assert pool.names(client) == [reservation.id]
            assert pool.level(client).places == 1
        assert pool.level(client).places == 0


async def test_acquire_waits_as_long_as_it_was_told(shared_server: Server, client: Redis) -> None:
    """A new pool opens after 0.3 s, so the second asking is admitted and none before."""
    async with bucket(shared_server.url, ONE_PLACE, lease=1) as made:
        started = time.monotonic()
        async with made.acquire(1, BATCH, started + 5):
            waited = time.monotonic() - started
    assert 0.3 <= waited < 2
    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] >= 2


async def test_acquire_gives_up_at_once_when_the_deadline_comes_first(full: SharedBucket) -> None:
    async with full.reserve(1_000, INTERACTIVE):
        started = time.monotonic()
        with pytest.raises(CapacityRefused) as caught:
            await full.acquire(100, BATCH, started + 30).__aenter__()
    assert time.monotonic() - started < 5
    assert caught.value.reason == "CAPACITY_TOKENS"
    assert caught.value.retry_after == pytest.approx(6_000, rel=0.01)


async def test_acquire_waits_for_a_place(shared_server: Server, client: Redis) -> None:
    pool.fill(client)
    async with bucket(shared_server.url, ONE_PLACE) as made, AsyncExitStack() as held:
        await held.enter_async_context(made.reserve(1, INTERACTIVE))
        asyncio.get_running_loop().call_later(0.1, lambda: asyncio.ensure_future(held.aclose()))
        async with made.acquire(1, BATCH, time.monotonic() + 5):
            assert pool.level(client).places == 1


async def test_a_stalled_server_is_an_error_in_time_and_recovers(own_server: Server) -> None:
    with Redis.from_url(own_server.url) as client:
        pool.fill(client)
        async with bucket(own_server.url, LIMITS, decision_timeout=0.05) as made:
            await reserve_soon(made, 5)
            own_server.stop()
            # On the connection that stood, and on new ones.
            for _ in range(4):
                error, seconds = await refused(made)
                assert error.reason == "CAPACITY_UNAVAILABLE"
                assert seconds < 0.5
            own_server.go_on()
            await reserve_soon(made, 2)
            # What the server granted afterwards to callers long gone is given back by its id.
            await until(lambda: pool.level(client).places == 0, 2)


async def test_a_dead_server_is_an_error_in_time_and_recovers(own_server: Server) -> None:
    async with bucket(own_server.url, ONE_PLACE, decision_timeout=0.05, lease=1) as made:
        await reserve_soon(made, 5)
        own_server.kill()
        for _ in range(4):
            _, seconds = await refused(made)
            assert seconds < 0.5
        own_server.start()
        await reserve_soon(made, 5)


async def test_settling_with_a_dead_server_does_not_hide_the_answer(own_server: Server) -> None:
    async with (
        bucket(own_server.url, ONE_PLACE, lease=1) as made,
        made.acquire(1, INTERACTIVE, time.monotonic() + 5) as reservation,
    ):
        own_server.kill()
        reservation.report(1)
    assert own_server.process.returncode is not None


async def test_an_address_where_nobody_listens_is_an_error_in_time(
    free_port: Callable[[], int],
) -> None:
    url = f"redis://127.0.0.1:{free_port()}"
    async with bucket(url, LIMITS, decision_timeout=0.05) as made:
        _, seconds = await refused(made)
    assert seconds < 0.5
