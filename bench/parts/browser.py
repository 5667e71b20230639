"""People before the web page, who leave in the middle of an answer."""

import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page, async_playwright

SIGNED_IN = "sessionStorage.setItem('sluice.token', {!r})"


def chromium() -> str | None:
    """Where Debian's Chromium is, if this machine has one."""
    return shutil.which("chromium")


@asynccontextmanager
async def browsing(executable: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable)
        yield browser
        await browser.close()


async def reading(browser: Browser, address: str, token: str, question: str) -> Page:
    """A page that shows the first text of the question's answer."""
    page = await browser.new_page()
    await page.add_init_script(SIGNED_IN.format(token))
    await page.goto(address)
    await page.get_by_label("Your question").fill(question)
    await page.keyboard.press("Enter")
    await page.locator("#text:visible").filter(has_text="1").wait_for()
    return page


async def cancelled(page: Page) -> float:
    """Press the page's own button. When that began, on the monotonic clock in seconds."""
    button = page.get_by_role("button", name="Cancel")
    await button.hover()
    began = time.monotonic()
    await button.dispatch_event("click")
    return began


async def closed(page: Page) -> float:
    """As the tab's close button does. When that began."""
    began = time.monotonic()
    await page.close()
    return began
