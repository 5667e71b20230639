"""A gateway with jobs and a worker for a module's tests, fresh stages for each test."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.gateway.house import ALL, SEATS, House, gateway, served
from tests.gateway.jobs.shop import Vault, vault, worker


@dataclass
class Shop:
    house: House
    vault: Vault


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    folder = tmp_path_factory.mktemp("jobs")
    async with vault(folder / "redis") as kept, served(*ALL) as behind:
        told = {"MAX_IN_FLIGHT": str(SEATS), "JOBS_REDIS_URL": kept.url}
        async with (
            gateway(behind, folder / "gateway.log", told) as house,
            worker(behind, folder / "worker.log", kept.url, {"JOB_ATTEMPTS": "3"}),
        ):
            yield Shop(house, kept)


@pytest_asyncio.fixture(loop_scope="module")
async def shop(standing_shop: Shop) -> Shop:
    for stage in standing_shop.house.stages.values():
        stage.reset()
    with standing_shop.vault.client() as client:
        client.delete("sluice:{jobs}:pace")
    return standing_shop
