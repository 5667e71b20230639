"""The capacity panel: who sees it, and that it lives."""

import asyncio
import re

import pytest
from playwright.async_api import expect

from tests.gateway.house import SEATS, House
from tests.web.browser.visit import Visits, ask

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_others_do_not_see_it(visits: Visits) -> None:
    page = await visits.open()
    await expect(page.locator("#signed-in")).to_be_visible()
    await ask(page)
    await expect(page.locator("#text:visible")).to_contain_text("Rotate")
    await expect(page.locator("#capacity")).to_be_hidden()


async def test_operators_see_levels_questions_in_flight_and_refusals_live(
    house: House, visits: Visits
) -> None:
    page = await visits.open(roles=["operator"])
    await page.locator("#capacity summary").click()
    figures = {
        title: page.locator("figure", has=page.get_by_text(title, exact=True)).first
        for title in ("Questions in flight", "Refused each second", "Tokens left")
    }
    await expect(figures["Questions in flight"]).to_contain_text(f"0 of {SEATS}")
    await expect(figures["Tokens left"]).to_contain_text(re.compile(r"[\d,]+ of 25,000"))
    release = house.generate.hold()
    asking = [asyncio.create_task(house.ask()) for _ in range(SEATS)]
    await expect(figures["Questions in flight"]).to_contain_text(f"{SEATS} of {SEATS}")
    before = await figures["Refused each second"].inner_text()
    assert (await house.ask()).status_code == 503
    await expect(figures["Refused each second"]).not_to_have_text(before)
    await expect(page.locator("#levels:visible")).to_contain_text("NO_ROOM")
    release.set()
    await asyncio.gather(*asking)
    await expect(figures["Questions in flight"]).to_contain_text(f"0 of {SEATS}")
    drawn = await figures["Questions in flight"].locator("polyline").get_attribute("points")
    heights = {point.partition(",")[2] for point in (drawn or "").split()}
    assert {"98.00", "2.00"} <= heights
