from collections.abc import AsyncIterator, Iterator

import pytest
from qdrant_client import models

from tests.retrieve import engine
from tests.retrieve.engine import SMALL, Node, Shelf, node


@pytest.fixture(scope="session")
def qdrant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with node(tmp_path_factory.mktemp("qdrant")) as found:
        yield found


@pytest.fixture
async def shelf(qdrant: Node) -> AsyncIterator[Shelf]:
    """A collection that is set up and empty. All tests share it: setting up takes seconds."""
    everything = models.FilterSelector(filter=models.Filter())
    async with engine.shelf(qdrant, "shared", SMALL) as found:
        await found.set_up()
        await found.client.delete(found.alias, everything, wait=True)
        yield found
