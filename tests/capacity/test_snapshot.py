"""What is shown of a pool, on a real server."""

import pytest
from redis import Redis

from capacity import CircuitState, Limits, Mode, Workload
from tests.capacity import pool
from tests.capacity.buckets import bucket
from tests.capacity.server import Server

BATCH, INTERACTIVE = Workload.BATCH, Workload.INTERACTIVE
# Hardly anything is refilled while a test runs.
LIMITS = Limits(103, 1_002, 10, 100, 0.5, request_burst=100, token_burst=1_000)


async def test_levels_are_what_is_left_for_both_classes(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    async with (
        bucket(shared_server.url, LIMITS) as made,
        made.reserve(100, INTERACTIVE),
        made.reserve(200, BATCH),
    ):
        before = pool.dump(client)
        shot = await made.snapshot()
        assert pool.dump(client) == before
    assert shot.in_flight == {"interactive": 1, "batch": 1}
    assert (shot.pool.places, shot.pool.in_flight) == (10, 2)
    assert (shot.batch.places, shot.batch.in_flight) == (5, 1)
    assert (shot.pool.tokens.size, shot.pool.tokens.limit) == (1_000, 1_002)
    assert shot.pool.tokens.level == pytest.approx(700, abs=2)
    assert shot.batch.tokens.size == 500
    assert shot.batch.tokens.level == pytest.approx(300, abs=2)
    assert shot.pool.requests.level == pytest.approx(98, abs=1)
    assert (shot.waiting, shot.cooldown, shot.ramp, shot.opens_in) == (0, 0, 1, 0)
    assert (shot.circuit, shot.mode) == (CircuitState.CLOSED, Mode.SHARED)


async def test_debts_are_shown_as_nothing_left(shared_server: Server, client: Redis) -> None:
    pool.fill(client)
    async with bucket(shared_server.url, LIMITS) as made:
        async with made.reserve(100, BATCH) as reservation:
            reservation.report(50_000)
        shot = await made.snapshot()
    assert (shot.pool.tokens.level, shot.batch.tokens.level) == (0, 0)


async def test_leases_of_the_dead_are_not_shown(shared_server: Server, client: Redis) -> None:
    pool.fill(client)
    scripts = pool.Scripts(client, LIMITS)
    scripts.reserve("dead", 100)
    async with bucket(shared_server.url, LIMITS) as made:
        shot = await made.snapshot()
    assert shot.in_flight == {"interactive": 0, "batch": 0}


async def test_a_new_pool_tells_when_it_opens(shared_server: Server, client: Redis) -> None:
    async with bucket(shared_server.url, LIMITS) as made:
        shot = await made.snapshot()
        assert not client.keys()
        await made.check()
        opening = await made.snapshot()
    assert (shot.opens_in, shot.pool.tokens.level) == (3, 0)
    assert 0 < opening.opens_in <= 3


async def test_cooldown_and_ramp_are_told(shared_server: Server, client: Redis) -> None:
    pool.fill(client)
    scripts = pool.Scripts(client, LIMITS)
    async with bucket(shared_server.url, LIMITS) as made:
        await made.cool_down(60)
        cooling = await made.snapshot()
        seconds, _ = client.time()
        scripts.now = (seconds - 65) * pool.SECOND
        pool.empty(client, scripts.now)
        scripts.cool_down(60 * pool.SECOND)
        ramping = await made.snapshot()
    assert cooling.cooldown == pytest.approx(60, abs=3)
    assert (cooling.ramp, ramping.cooldown) == (0, 0)
    assert ramping.ramp == pytest.approx(0.55, abs=0.2)


async def test_the_share_set_aside_is_not_shown_as_shared(
    shared_server: Server, client: Redis
) -> None:
    pool.fill(client)
    limits = Limits(6_000, 600_000, 100, 100)
    async with bucket(shared_server.url, limits, local_share=0.1) as made:
        shot = await made.snapshot()
    assert shot.pool.requests.limit == pytest.approx(5_400, abs=1)
    assert shot.pool.tokens.limit == pytest.approx(540_000, abs=1)
    assert shot.pool.places == 90


async def test_who_only_looks_sees_the_pool_at_once_after_a_restart(own_server: Server) -> None:
    async with bucket(own_server.url, LIMITS) as looking:
        assert (await looking.snapshot()).mode is Mode.SHARED
        own_server.kill()
        own_server.start()
        assert (await looking.snapshot()).mode is Mode.SHARED
