import uuid
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from qdrant_client import AsyncQdrantClient

from bench.parts import ordinary
from corpus import collection
from corpus.qdrant import Qdrant
from tests.capacity.server import Server
from tests.ingest import parts
from tests.ingest.parts import Part, Shelf, shelf
from tests.stages import free_port


@pytest.fixture
def unused_port() -> int:
    return free_port()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Part]:
    running = parts.node(tmp_path_factory.mktemp("qdrant"), free_port())
    running.start()
    yield running
    running.kill()


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
async def qdrant(node: Part) -> AsyncIterator[Qdrant]:
    qdrant = collection.connect(node.url)
    yield qdrant
    await qdrant.close()


@pytest.fixture
async def client(node: Part) -> AsyncIterator[AsyncQdrantClient]:
    """Somebody else's, to look from outside."""
    client = ordinary.client(node.url)
    yield client
    await client.close()


@pytest.fixture
async def library(qdrant: Qdrant, client: AsyncQdrantClient, redis: Server) -> AsyncIterator[Shelf]:
    """A tenant of the test's own."""
    made = shelf(qdrant, client, redis.url, f"tenant-{uuid.uuid4()}")
    await made.library.index.ensure()
    yield made
    await made.library.leases.close()


@pytest.fixture
async def another(
    qdrant: Qdrant, client: AsyncQdrantClient, redis: Server
) -> AsyncIterator[Callable[[str], Shelf]]:
    """Further processes' libraries of a tenant, as far as one process can stand for several."""
    made: list[Shelf] = []

    def build(tenant: str) -> Shelf:
        made.append(shelf(qdrant, client, redis.url, tenant))
        return made[-1]

    yield build
    for one in made:
        await one.library.leases.close()
