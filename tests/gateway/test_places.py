"""Leases on places over a real Redis, and the store that is not asked while it is lost."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from redis import Redis

from gateway.places import KEY, SharedPlaces
from gateway.store import RETRY_EVERY, Store, StoreLost
from tests.capacity.server import Server
from tests.gateway.house import until

LEASE = 0.5


@pytest.fixture
async def store(redis: Redis, redis_server: Server) -> AsyncIterator[Store]:
    store = Store.connect(redis_server.url, 5)
    yield store
    await store.close()


async def test_places_are_taken_up_to_their_number_and_renewed_until_given_back(
    store: Store, redis: Redis
) -> None:
    first, second = (SharedPlaces(store, 3, 1, LEASE) for _ in range(2))
    held = [await places.take() for places in (first, second, first)]
    assert None not in held
    assert await second.take() is None
    assert await first.taken() == 3
    began = time.monotonic()
    while time.monotonic() < began + 2 * LEASE:
        assert await second.take() is None
    await second.give(held[1] or "")
    assert await second.take()
    await first.close()
    await second.close()

    async def all_lapsed() -> bool:
        return redis.exists(KEY) == 0

    await until(all_lapsed, 3 * LEASE)


async def test_a_place_that_was_granted_to_somebody_who_left_is_given_back(
    store: Store, redis: Redis
) -> None:
    places = SharedPlaces(store, 1, 1, 60)
    for _ in range(20):
        taking = asyncio.create_task(places.take())
        await asyncio.sleep(0)
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
    await places.close()
    assert await SharedPlaces(store, 1, 1, 60).take()


async def test_leases_from_before_the_servers_clock_went_back_lapse_in_time_all_the_same(
    store: Store, redis: Redis
) -> None:
    places = SharedPlaces(store, 1, 1, LEASE)
    redis.zadd(KEY, {"dead": (time.time() + 3_600) * 1_000})
    assert await places.take() is None

    async def taken() -> bool:
        return await places.take() is not None

    await until(taken, 3 * LEASE)
    await places.close()


async def test_a_lost_store_is_tried_by_one_step_at_a_time_and_found_again(
    own_redis: Server,
) -> None:
    now = 0.0
    client = Store.connect(own_redis.url, 5)._redis
    store = Store(client, 5, clock=lambda: now)
    own_redis.kill()
    for _ in range(2):
        with pytest.raises(StoreLost):
            await store.run("give_place", ["key"], "nobody")
    assert store.lost
    own_redis.start()
    with pytest.raises(StoreLost):
        await store.run("give_place", ["key"], "nobody")
    now += RETRY_EVERY
    steps = [store.run("give_place", ["key"], "nobody") for _ in range(3)]
    replies = await asyncio.gather(*steps, return_exceptions=True)
    assert replies[0] == [0]
    assert {type(reply) for reply in replies[1:]} == {StoreLost}
    assert not store.lost
    await store.close()


async def test_a_script_that_redis_has_forgotten_is_sent_again(store: Store, redis: Redis) -> None:
    assert await store.run("give_place", ["key"], "nobody") == [0]
    redis.script_flush()
    assert await store.run("give_place", ["key"], "nobody") == [0]
