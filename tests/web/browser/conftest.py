"""A headless Chromium before a real gateway, whose stages do what the test says."""

import shutil
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.capacity.server import Server
from tests.gateway.house import ALL, SEATS, House, gateway, served
from tests.web.browser.visit import Visits

FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 15_000  # milliseconds; a busy machine is no fault of the page


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where Debian's Chromium is; without it the tests are skipped."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
def redis_server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def standing(
    tmp_path_factory: pytest.TempPathFactory, redis_server: Server
) -> AsyncIterator[House]:
    log = tmp_path_factory.mktemp("gateway") / "log"
    told = {"MAX_IN_FLIGHT": str(SEATS), "REDIS_URL": redis_server.url}
    async with served(*ALL) as behind, gateway(behind, log, told) as house:
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def house(standing: House) -> House:
    """The gateway, its stages back to normal and all of them up."""
    for stage in standing.stages.values():
        stage.reset()
        if stage.server is None:
            await stage.start()
    return standing


@pytest_asyncio.fixture(loop_scope="session")
async def visits(browser: Browser, house: House) -> AsyncIterator[Visits]:
    """Opens the page; at the end nothing may have happened that the page's policy forbids."""
    visits = Visits(browser, f"http://127.0.0.1:{house.http_port}/")
    yield visits
    await visits.leave()
    assert visits.faults == []
