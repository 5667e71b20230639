"""A scripted provider and a pool on a real server for every test."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.capacity.server import running_server
from tests.generate.asking import Desk
from tests.generate.asking import desk as open_desk
from tests.scripted_provider.pool import Pool, full_pool
from tests.scripted_provider.server import ScriptedProvider


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


@pytest.fixture
async def pool(redis_url: str) -> AsyncIterator[Pool]:
    async with full_pool(redis_url) as pool:
        yield pool


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    async with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
async def desk(provider: ScriptedProvider, pool: Pool) -> AsyncIterator[Desk]:
    async with open_desk(provider, pool.bucket) as opened:
        yield opened
