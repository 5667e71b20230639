"""What assistive technology and small screens meet, in every state of the page."""

import asyncio
from importlib.resources import files
from typing import Any, Literal

import pytest
from playwright.async_api import Page, ViewportSize, expect

from chassis.errors import Unavailable
from tests.gateway.house import House, delta, raising, returning, telling
from tests.web.browser.visit import DESKTOP, ROTATION, UNCERTAIN, Visits, ask, passage_of, prompt

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
PHONE: ViewportSize = {"width": 360, "height": 740}


WIDER = """
[document.documentElement, document.querySelector("dialog")].some(
  ({scrollWidth, clientWidth}) => scrollWidth > clientWidth)
"""


async def faults(page: Page) -> list[str]:
    """What axe-core complains of, and whether the page is wider than the screen."""
    found: Any = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    wide = await page.evaluate(WIDER)
    said = [f"{one['id']}: {one['nodes'][0]['html']}" for one in found["violations"]]
    return [*said, *(["wider than the screen"] if wide else [])]


@pytest.mark.parametrize(
    ("scheme", "screen"),
    [("light", PHONE), ("dark", DESKTOP), ("dark", PHONE), ("light", DESKTOP)],
    ids=["light phone", "dark desktop", "dark phone", "light desktop"],
)
async def test_every_state_is_accessible_and_fits(
    house: House, visits: Visits, scheme: Literal["dark", "light"], screen: ViewportSize
) -> None:
    endless = "nowheretobreak" * 12
    source = passage_of("S1", 1, f"{endless}\n| a | table | with | columns |")
    source.title = source.document_id = source.version = endless
    source.uri = f"https://docs.example.org/{endless}"
    house.assemble.behaviour = returning(prompt(source, passage_of("S2", 2)))

    nobody = await visits.open(signed_in=False, scheme=scheme, screen=screen)
    await expect(nobody.get_by_label("Bearer token")).to_be_visible()
    await nobody.evaluate(AXE)
    assert await faults(nobody) == []

    page = await visits.open(roles=["operator"], scheme=scheme, screen=screen)
    await page.evaluate(AXE)
    house.generate.telling = telling(delta("Half of " + endless), asyncio.Event())
    await ask(page)
    await expect(page.locator("#text:visible")).to_contain_text("Half")
    assert await faults(page) == []
    await page.get_by_role("button", name="Cancel").click()

    house.generate.reset()
    house.generate.behaviour = returning(ROTATION)
    await ask(page)
    await page.locator("#provenance summary").click()
    await page.locator("#capacity summary").click()
    await expect(page.locator("#levels figure").first).to_be_visible()
    assert await faults(page) == []
    await page.get_by_role("button", name="S1").first.click()
    assert await faults(page) == []
    await page.keyboard.press("Escape")

    house.generate.behaviour = returning(UNCERTAIN)
    await ask(page)
    await expect(page.locator("#words.notice")).to_be_visible()
    assert await faults(page) == []

    house.generate.behaviour = raising(Unavailable("down", reason="DOWN"))
    await ask(page)
    await expect(page.locator("#evidence-title:visible")).to_have_text("Matching passages")
    assert await faults(page) == []
