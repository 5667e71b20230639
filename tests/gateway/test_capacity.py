"""What operators see of capacity, and that nobody else does."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from capacity import SharedBucket, Workload
from chassis.errors import Exhausted
from chassis.identity import AccessLevel
from gateway.identity import development_token
from providers.settings import EmbeddingSettings
from tests.capacity.server import Server
from tests.gateway.house import ALL, SEATS, House, bearer, gateway, raising, served, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPERATOR = {
    "Authorization": "Bearer "
    + development_token("olga", "acme", AccessLevel.PUBLIC, roles=["operator"])
}


async def capacity(house: House) -> dict[str, Any]:
    response = await house.http.get("/v1/capacity", headers=OPERATOR)
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    found: dict[str, Any] = response.json()
    return found


async def test_only_operators_see_it(house: House) -> None:
    nobody = await house.http.get("/v1/capacity")
    anybody = await house.http.get("/v1/capacity", headers=bearer())
    assert (nobody.status_code, nobody.json()["reason"]) == (401, "UNAUTHENTICATED")
    assert (anybody.status_code, anybody.json()["reason"]) == (403, "ROLE_MISSING")


async def test_a_pools_attempts_and_levels_are_shown(
    house: House, redis: Redis, redis_server: Server
) -> None:
    settings = EmbeddingSettings()
    bucket = SharedBucket.connect(
        redis_server.url,
        "embeddings",
        settings.embedding_limits(),
        local_share=settings.local_share,
        decision_timeout=5,
    )
    async with bucket.acquire(20_000, Workload.BATCH, time.monotonic() + 30) as reservation:
        reservation.report(20_000)
        answers, embeddings = (await capacity(house))["pools"]
    await bucket.close()
    assert [answers["name"], embeddings["name"]] == ["answers", "embeddings"]
    assert embeddings["in_flight"] == {"interactive": 0, "batch": 1}
    assert (embeddings["mode"], embeddings["cooldown"], embeddings["ramp"]) == ("shared", 0, 1)
    everybody, batch = embeddings["pool"], embeddings["batch"]
    assert everybody["tokens"]["limit"] == pytest.approx(2_000_000 * 0.95)
    assert batch["tokens"]["limit"] == pytest.approx(2_000_000 * 0.95 * 0.8)
    assert everybody["tokens"]["size"] - everybody["tokens"]["level"] > 0
    assert 0 <= batch["tokens"]["level"] < batch["tokens"]["size"]
    assert answers["in_flight"] == {"interactive": 0, "batch": 0}
    assert answers["opens_in"] > 0


async def test_a_full_gateway_still_shows_its_room_and_what_it_refused(
    house: House, redis: Redis
) -> None:
    refused = (await capacity(house))["gateway"]["refusals"].get("NO_ROOM", 0)
    release = house.generate.hold()
    asking = [asyncio.create_task(house.ask()) for _ in range(SEATS)]

    async def full() -> bool:
        return len(house.generate.seen) == SEATS

    await until(full)
    assert (await house.ask()).status_code == 503
    seen = (await capacity(house))["gateway"]
    release.set()
    assert {response.status_code for response in await asyncio.gather(*asking)} == {200}
    assert seen == {
        "mode": "shared",
        "in_flight": SEATS,
        "max_in_flight": SEATS,
        "waiting": 0,
        "shared_in_flight": SEATS,
        "shared_max_in_flight": 256,
        "refusals": {"NO_ROOM": refused + 1},
    }
    assert (await capacity(house))["gateway"]["in_flight"] == 0


async def test_while_redis_stands_still_it_is_shown_within_a_second_and_says_so(
    tmp_path: Path, own_redis: Server
) -> None:
    told = {"REDIS_URL": own_redis.url, "ADMISSION_DECISION_SECONDS": "0.05"}
    async with served(*ALL) as behind, gateway(behind, tmp_path / "log", told) as house:
        own_redis.stop()
        began = time.monotonic()
        seen = await capacity(house)
        assert time.monotonic() - began < 1
        # The share of the default limits is below one place.
        assert {pool["mode"] for pool in seen["pools"]} == {"closed"}
        assert seen["gateway"]["mode"] == "local_share"
        assert seen["gateway"]["shared_in_flight"] is None
        own_redis.go_on()

        async def shared() -> bool:
            found = await capacity(house)
            modes = {pool["mode"] for pool in found["pools"]} | {found["gateway"]["mode"]}
            return modes == {"shared"}

        await until(shared)


async def test_answers_that_capacity_was_missing_for_are_counted(house: House) -> None:
    before = (await capacity(house))["gateway"]["refusals"].get("CAPACITY", 0)
    house.generate.behaviour = raising(Exhausted("used up", reason="CAPACITY_TOKENS"))
    assert (await house.ask()).json()["reason"] == "CAPACITY"
    assert (await capacity(house))["gateway"]["refusals"]["CAPACITY"] == before + 1
