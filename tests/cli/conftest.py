from collections.abc import AsyncIterator

import pytest

from tests.cli.stage import Stage, served


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with served() as stage:
        yield stage
