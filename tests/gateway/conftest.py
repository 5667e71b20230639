"""One Redis for the tests, one gateway for a module's tests, fresh stages for each test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from redis import Redis

from tests.capacity.server import Server
from tests.gateway.house import ALL, SEATS, House, gateway, served


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def redis(redis_server: Server) -> Iterator[Redis]:
    """The tests' Redis, empty."""
    with Redis.from_url(redis_server.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Server]:
    """One that the test may stop or kill."""
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing(
    tmp_path_factory: pytest.TempPathFactory, redis_server: Server
) -> AsyncIterator[House]:
    """One gateway for a module's tests."""
    log = tmp_path_factory.mktemp("gateway") / "log"
    told = {"MAX_IN_FLIGHT": str(SEATS), "REDIS_URL": redis_server.url}
    async with (
        served(*ALL) as behind,
        gateway(behind, log, told) as house,
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
