"""One gateway for a module's tests, fresh stages for each test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.gateway.house import ALL, SEATS, House, gateway, served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One gateway for a module's tests."""
    log = tmp_path_factory.mktemp("gateway") / "log"
    async with (
        served(*ALL) as behind,
        gateway(behind, log, {"MAX_IN_FLIGHT": str(SEATS)}) as house,
    ):
        yield house


@pytest_asyncio.fixture(loop_scope="module")
async def house(standing: House) -> House:
    """The module's gateway, its stages back to normal and all of them up."""
    for stage in standing.stages.values():
        stage.reset()
        if stage.server is None:
            await stage.start()
    return standing
