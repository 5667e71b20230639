import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import Conflict, Unavailable
from services.ingest.lease import COMMAND_LIMIT, Leases, connect
from tests.capacity.server import Server


@pytest.fixture
async def leases(redis: Server) -> AsyncIterator[Leases]:
    made = Leases(connect(redis.url), time_limit=0.3, quiet=0.05)
    yield made
    await made.close()


async def test_a_lease_is_free_again_once_it_was_given_back(leases: Leases) -> None:
    tokens = set()
    for _ in range(2):
        async with leases.hold("given-back") as lease:
            await lease.extend()
            tokens.add(lease.token)
    assert len(tokens) == 2


async def test_only_one_holds_a_tenant_while_others_hold_theirs(leases: Leases) -> None:
    deadlines.enter(Deadline.after(0.2))
    async with leases.hold("one"), leases.hold("two"):
        with pytest.raises(Unavailable, match="is being published") as refusal:
            async with leases.hold("one"):
                pytest.fail("held twice")
    assert refusal.value.reason == "PUBLISH_BUSY"
    assert refusal.value.retry_after == 1.0


async def test_waiters_take_turns(leases: Leases) -> None:
    inside = 0

    async def publish() -> None:
        nonlocal inside
        async with leases.hold("turns"):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(publish() for _ in range(5)))
    assert inside == 0


async def test_a_lease_lapses_when_its_holder_died(leases: Leases) -> None:
    dead = leases.hold("dead")
    lease = await dead.__aenter__()
    began = time.monotonic()
    async with leases.hold("dead"):
        assert time.monotonic() - began > 0.2
        with pytest.raises(Conflict) as refusal:
            await lease.extend()
        await dead.__aexit__(None, None, None)
    assert refusal.value.reason == "LEASE_LOST"


async def test_a_lease_that_is_extended_does_not_lapse(leases: Leases) -> None:
    async with leases.hold("extended") as lease:
        began = time.monotonic()
        while time.monotonic() - began < 0.5:
            await lease.extend()
            await asyncio.sleep(0)
        assert await lease.redis.get(lease.key) == lease.token.encode()


async def test_after_a_failure_the_next_one_waits_for_late_writes(leases: Leases) -> None:
    with pytest.raises(ZeroDivisionError):
        async with leases.hold("failed"):
            raise ZeroDivisionError
    began = time.monotonic()
    async with leases.hold("failed"):
        assert 0.03 < time.monotonic() - began < 0.3


async def test_a_late_publisher_cannot_give_back_what_is_not_its(leases: Leases) -> None:
    late = leases.hold("late")
    lease = await late.__aenter__()
    async with leases.hold("late") as mine:
        await lease.release()
        await late.__aexit__(None, None, None)
        await mine.extend()
        assert await mine.redis.get(mine.key) == mine.token.encode()


async def test_without_redis_it_is_said_in_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Server(tmp_path_factory.mktemp("own-redis"))
    server.start()
    leases = Leases(connect(server.url))
    await leases.check()
    server.kill()
    began = time.monotonic()
    with pytest.raises(Unavailable) as refusal:
        async with leases.hold("any"):
            pytest.fail("held without Redis")
    with pytest.raises(Unavailable):
        await leases.check()
    assert refusal.value.reason == "LEASE_UNAVAILABLE"
    assert time.monotonic() - began < 3 * COMMAND_LIMIT
    await leases.close()
