from collections.abc import Callable

import pytest

from providers.failures import ProviderUnavailable
from providers.reach import reach
from tests.scripted_provider.server import ScriptedProvider


async def test_an_endpoint_that_listens_is_reached(provider: ScriptedProvider) -> None:
    await reach(provider.base_url)
    assert provider.arrivals == []


async def test_an_endpoint_that_does_not_listen_is_not(free_port: Callable[[], int]) -> None:
    port = free_port()
    with pytest.raises(ProviderUnavailable, match=str(port)):
        await reach(f"http://127.0.0.1:{port}/v1")


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/v1", "http://nowhere.invalid/v1"])
async def test_an_address_that_cannot_be_is_not_reached(url: str) -> None:
    with pytest.raises(ProviderUnavailable):
        await reach(url)
