"""What cannot be answered now is queued, followed and cancelled, also after a reload."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from chassis.errors import Unavailable
from gateway.answer import Answer, Citation, Written
from gateway.jobs.job import State
from gateway.jobs.leases import Attempt, Leases, Pace
from gateway.jobs.ledger import QUEUE
from gateway.jobs.wire import answer_bytes
from gateway.outcome import Acceptance, Mode, Outcome, Reason
from gateway.store import Store
from tests.gateway.house import ALL, House, gateway, raising, served, source, until
from tests.gateway.jobs.shop import Vault, vault
from tests.web.browser.test_looks import AXE, faults
from tests.web.browser.visit import Visits, ask

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANSWER = Answer(
    "a1",
    Written(
        Outcome(Mode.GENERATED, Reason.NONE, Acceptance.ACCEPTED),
        "Rotate it on day 1. [S1]",
        [Citation("S1", 0, 24, 1.0)],
    ),
    [source("S1", 1)],
    {"retrieve": 0.1},
    0.1,
    "en-1",
    "COSINE",
    7,
)


@dataclass
class Counter:
    """A gateway with jobs, and what a worker would do to them."""

    house: House
    vault: Vault
    leases: Leases

    async def taken(self) -> Attempt:
        """The attempt that a worker begins with the next entry."""
        with self.vault.client() as client:

            async def waits() -> bool:
                return bool(client.xlen(QUEUE))

            await until(waits)
            ((name, fields),) = client.xrange(QUEUE, count=1)
            client.xdel(QUEUE, name)
        found = await self.leases.begin(json.loads(fields[b"data"])["args"][0])
        assert isinstance(found, Attempt)
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def standing_counter(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Counter]:
    folder = tmp_path_factory.mktemp("later")
    async with vault(folder / "redis") as kept, served(*ALL) as behind:
        told = {"MAX_IN_FLIGHT": "1", "JOBS_REDIS_URL": kept.url}
        store = Store.connect(kept.url, 5)
        async with gateway(behind, folder / "log", told) as house:

            async def offered() -> bool:
                return bool((await house.http.get("/v1/status")).json()["jobs"])

            await until(offered)
            yield Counter(house, kept, Leases(store, Pace(60, 5, 60_000, 0.1)))
        await store.close()


@pytest_asyncio.fixture(loop_scope="session")
async def counter(standing_counter: Counter) -> Counter:
    for stage in standing_counter.house.stages.values():
        stage.reset()
    with standing_counter.vault.client() as client:
        client.flushall()
    return standing_counter


@pytest_asyncio.fixture(loop_scope="session")
async def visits(browser: Browser, counter: Counter) -> AsyncIterator[Visits]:
    visits = Visits(browser, f"http://127.0.0.1:{counter.house.http_port}/")
    yield visits
    await visits.leave()
    assert visits.faults == []


async def queued(counter: Counter, visits: Visits) -> Page:
    """The page of somebody who was told that the model is away, and queued the question."""
    counter.house.generate.behaviour = raising(Unavailable("down", reason="DOWN"))
    page = await visits.open()
    await ask(page)
    offer = page.get_by_role("button", name="Answer it later")
    await expect(offer).to_be_visible()
    await offer.click()
    await expect(page.locator("#headline:visible")).to_have_text("Accepted, to be answered later")
    await expect(page.locator("#stages li.running")).to_contain_text("Waiting for its turn")
    await expect(page.locator("#offer")).to_be_hidden()
    return page


async def test_a_queued_question_is_followed_and_shown_like_any_other(
    counter: Counter, visits: Visits
) -> None:
    page = await queued(counter, visits)
    await page.evaluate(AXE)
    assert await faults(page) == []
    attempt = await counter.taken()
    await expect(page.locator("#stages li.running")).to_contain_text("Being answered")
    await counter.leases.finish(attempt, State.DONE, "", answer_bytes(ANSWER))
    await expect(page.locator("#headline:visible")).to_have_text("Answer")
    await expect(page.locator("#text:visible")).to_have_text("Rotate it on day 1. S1")
    await expect(page.locator("#stages li.ended")).to_have_count(2)
    await expect(page.locator("#stages li.stopped")).to_have_count(0)
    await page.get_by_role("button", name="S1: Database runbook").first.click()
    await expect(page.get_by_role("dialog")).to_contain_text("Rotate it on day 1.")
    assert await page.evaluate("sessionStorage.getItem('sluice.job')") is None


async def test_it_is_followed_after_a_reload_too(counter: Counter, visits: Visits) -> None:
    page = await queued(counter, visits)
    await page.reload()
    await expect(page.locator("#stages li.running")).to_contain_text("Waiting for its turn")
    attempt = await counter.taken()
    await counter.leases.finish(attempt, State.DONE, "", answer_bytes(ANSWER))
    await expect(page.locator("#text:visible")).to_have_text("Rotate it on day 1. S1")


async def test_cancelling_ends_the_job(counter: Counter, visits: Visits) -> None:
    page = await queued(counter, visits)
    attempt = await counter.taken()
    await expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#withdrawn:visible")).to_have_text("You cancelled this question.")
    await expect(page.locator("#words")).to_be_hidden()

    async def ended() -> bool:
        return not await counter.leases.renew(attempt)

    assert await until(ended)
    await expect(page.get_by_label("Your question")).to_be_focused()


async def test_a_job_that_fails_says_so(counter: Counter, visits: Visits) -> None:
    page = await queued(counter, visits)
    await counter.leases.finish(await counter.taken(), State.FAILED, "INTERNAL")
    await expect(page.locator("#withdrawn:visible")).to_have_text(
        "This question could not be answered."
    )


async def test_where_there_is_no_room_the_question_can_be_queued(
    counter: Counter, visits: Visits
) -> None:
    release = counter.house.generate.hold()
    first, second = await visits.open(), await visits.open()
    await ask(first)
    await counter.house.generate.reached()
    await ask(second)
    await second.get_by_role("button", name="Answer it later").click()
    await expect(second.locator("#headline:visible")).to_have_text("Accepted, to be answered later")
    release.set()
    await expect(first.locator("#headline:visible")).to_have_text("Quoted from the documents")


async def test_levels_of_a_gateway_without_redis_are_drawn_as_nothing(visits: Visits) -> None:
    """Of the pools it has no share at all: 0 of 0, which is no figure to draw a line to."""
    page = await visits.open(roles=["operator"])
    await page.locator("#capacity summary").click()
    tokens = page.locator("figure", has=page.get_by_text("Tokens left", exact=True)).first
    await expect(tokens).to_contain_text("0 of 0")
    await expect(page.locator("#levels")).not_to_contain_text("tokens a minute")
    drawn = await tokens.locator("polyline").get_attribute("points")
    assert "NaN" not in str(drawn)
