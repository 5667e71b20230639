"""What is told to whoever collects metrics."""

import pytest
from redis import Redis

from capacity import CapacityRefused, Limits, SharedBucket, Workload
from tests.capacity import pool
from tests.capacity.buckets import bucket
from tests.capacity.server import Server
from tests.measured import values

LIMITS = Limits(60_000, 1_001, 2, 100, 0, token_burst=1_000)
PREFIX = "sluice.capacity."
# Told of the same pool by other tests of the process; no counts.
LEVELS = {"left", "in_flight", "waiting", "cooldown"}


def told(**attributes: str) -> dict[str, float]:
    found = values(pool=pool.NAME, **attributes)
    return {name.removeprefix(PREFIX): value for name, value in found.items()}


def added(before: dict[str, float], **attributes: str) -> dict[str, float]:
    after = told(**attributes)
    return {name: after[name] - before.get(name, 0) for name in after.keys() - LEVELS}


async def test_grants_and_tokens_are_counted(shared_server: Server, client: Redis) -> None:
    values()
    pool.fill(client)
    before = told(**{"class": "batch"})
    async with bucket(shared_server.url, LIMITS) as made:
        async with made.reserve(100, Workload.BATCH) as reservation:
            reservation.report(30)
        async with made.reserve(50, Workload.BATCH):
            pass
    assert added(before, **{"class": "batch"}) == {
        "granted": 2,
        "tokens.estimated": 100,
        "tokens.used": 30,
        "tokens.unknown": 50,
    }


async def test_refusals_are_counted_by_reason(shared_server: Server, client: Redis) -> None:
    values()
    pool.fill(client)
    attributes = {"class": "interactive", "reason": "CAPACITY_IN_FLIGHT"}
    before = told(**attributes)
    async with (
        bucket(shared_server.url, LIMITS) as made,
        made.reserve(1, Workload.BATCH),
        made.reserve(1, Workload.BATCH),
    ):
        for _ in range(3):
            await _refuse(made)
    assert added(before, **attributes) == {"refused": 3}


async def _refuse(made: SharedBucket) -> None:
    with pytest.raises(CapacityRefused):
        await made.reserve(1, Workload.INTERACTIVE).__aenter__()


async def test_decisions_are_timed(shared_server: Server, client: Redis) -> None:
    values()
    pool.fill(client)
    async with bucket(shared_server.url, LIMITS) as made, made.reserve(1, Workload.BATCH):
        before = told()["decision.duration"]
        await made.reserve(1, Workload.BATCH).__aenter__()
        assert told()["decision.duration"] > before


async def test_what_is_left_is_told_when_somebody_looks(
    shared_server: Server, client: Redis
) -> None:
    values()
    pool.fill(client)
    async with bucket(shared_server.url, LIMITS) as made, made.reserve(100, Workload.BATCH):
        await made.snapshot()
    assert told()["waiting"] == 0
    assert told()["cooldown"] == 0
    for workload in ("interactive", "batch"):
        left = {
            name: told(dimension=name, **{"class": workload})["left"]
            for name in ("requests", "tokens", "places")
        }
        assert left["places"] == 0.5
        assert left["tokens"] == pytest.approx(0.9, abs=0.01)
        assert left["requests"] == pytest.approx(1, abs=0.01)
    assert told(**{"class": "batch"})["in_flight"] == 1
    assert told(**{"class": "interactive"})["in_flight"] == 0


async def test_the_mode_is_told(own_server: Server) -> None:
    values()
    async with bucket(own_server.url, LIMITS, decision_timeout=0.2, local_share=0) as made:
        await made.check()
        before = told()
        assert before["mode"] == 0
        own_server.kill()
        await made.snapshot()
        assert told()["mode"] == 2
        assert added(before)["lost"] == 1
