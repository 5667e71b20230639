from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from tests.capacity.crew import Crew
from tests.capacity.server import Server, running_server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """One that the test may stop or kill."""
    with running_server(tmp_path) as server:
        yield server


@pytest.fixture
def client(shared_server: Server) -> Iterator[Redis]:
    with Redis.from_url(shared_server.url) as client:
        client.flushall()
        yield client


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    made = Crew()
    yield made
    made.end()
