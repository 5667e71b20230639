"""A scripted provider and a pool on a real server for every test."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from providers import credentials
from providers.chat import ChatClient
from providers.credentials import Tokens
from tests.capacity.server import running_server
from tests.providers.asking import Make, endpoint
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
async def make(provider: ScriptedProvider, pool: Pool) -> AsyncIterator[Make]:
    clients: list[ChatClient] = []

    def build(key: str | Tokens | None = None, **changes: Any) -> ChatClient:  # noqa: ANN401 - fields of all types
        place = replace(endpoint(provider.base_url), **changes)
        proof = credentials.of(place.credentials, place.key) if key is None else key
        clients.append(ChatClient(place, pool.bucket, key=proof))
        return clients[-1]

    yield build
    for client in clients:
        await client.close()


@pytest.fixture
def chat(make: Make) -> ChatClient:
    return make()
