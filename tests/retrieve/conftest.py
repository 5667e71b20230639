from collections.abc import AsyncIterator, Iterator

import pytest
from qdrant_client import models

from corpus import collection
from tests.retrieve.engine import SMALL, Node, Shelf, node


@pytest.fixture(scope="session")
def qdrant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with node(tmp_path_factory.mktemp("qdrant")) as found:
        yield found


@pytest.fixture
async def shelf(qdrant: Node) -> AsyncIterator[Shelf]:
    """A collection that is set up and empty. All tests share it: setting up takes seconds."""
    client = collection.connect(qdrant.url)
    found = Shelf(client, "shared", SMALL)
    await found.set_up()
    await client.delete(found.alias, models.FilterSelector(filter=models.Filter()), wait=True)
    yield found
    await client.close()
