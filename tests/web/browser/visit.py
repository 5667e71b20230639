"""People before the page, what the stages tell them, and what must not happen meanwhile."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
)

from chassis.identity import AccessLevel
from gateway.identity import development_token
from sluice.answer.v1 import outcome_pb2
from sluice.assemble.v1 import assemble_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2
from tests.gateway.house import PROMPT, QUESTION, source

POLICY_BROKEN = """
document.addEventListener("securitypolicyviolation",
  ({violatedDirective, blockedURI}) => console.error("policy", violatedDirective, blockedURI));
"""
SIGNED_IN = "sessionStorage.setItem('sluice.token', {!r})"
# Chromium's own line for a response that is no success; the page says what it means.
REFUSED = "Failed to load resource"

FIRST = "The password is rotated every ninety days. [S1]"
SECOND = " Tell the owners \U0001f511 first. [S1, S2]"
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PASSAGE = "Rotation:\n\n  1. announce it\n  2. run the <b>tool</b>"


@dataclass
class Visits:
    """`faults` are scripts' errors, broken policies, dialogs, new windows and foreign requests."""

    browser: Browser
    address: str
    faults: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    async def open(
        self,
        *,
        level: AccessLevel = AccessLevel.TEAM,
        roles: Iterable[str] = (),
        signed_in: bool = True,
        scheme: Literal["dark", "light"] = "light",
        screen: ViewportSize | None = None,
    ) -> Page:
        context = await self.browser.new_context(color_scheme=scheme, viewport=screen or DESKTOP)
        self.contexts.append(context)
        await context.add_init_script(POLICY_BROKEN)
        if signed_in:
            token = development_token("ana", "acme", level, roles=roles)
            await context.add_init_script(SIGNED_IN.format(token))
        page = await context.new_page()
        self._watch(page)
        await page.goto(self.address)
        return page

    def _watch(self, page: Page) -> None:
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        page.on("popup", lambda popup: self.faults.append(popup.url))
        page.on("request", self._requested)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(REFUSED):
            self.faults.append(message.text)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith(self.address):
            self.faults.append(request.url)

    async def leave(self) -> None:
        for context in self.contexts:
            await context.close()


async def ask(page: Page, question: str = QUESTION) -> None:
    await page.get_by_label("Your question").fill(question)
    await page.keyboard.press("Enter")


def prompt(*sources: evidence_pb2.Source) -> assemble_pb2.AssembleResponse:
    return assemble_pb2.AssembleResponse(
        messages=PROMPT.messages, sources=sources, instructions_version="en-1"
    )


def passage_of(label: str, number: int, text: str = PASSAGE) -> evidence_pb2.Source:
    found = source(label, number)
    found.included_text = text
    found.version = "2026-03"
    found.heading_path[:] = ["Passwords", "Rotation"]
    found.uri = "https://docs.example.org/database"
    return found


def generated(
    text: str,
    *citations: outcome_pb2.Citation,
    acceptance: outcome_pb2.Acceptance.ValueType = outcome_pb2.ACCEPTANCE_ACCEPTED,
) -> generate_pb2.GenerateResponse:
    return generate_pb2.GenerateResponse(
        outcome=outcome_pb2.Outcome(generated=outcome_pb2.Generated(acceptance=acceptance)),
        text=text,
        citations=citations,
        usage=outcome_pb2.Usage(attempts=2, input_tokens=1_342, output_tokens=88, model="small"),
        provenance=outcome_pb2.Provenance(
            candidate="second", switch_reason=outcome_pb2.SWITCH_REASON_CAPACITY
        ),
    )


def cited(label: str, start: int, end: int, support: float) -> outcome_pb2.Citation:
    return outcome_pb2.Citation(label=label, start=start, end=end, support=support)


UNCERTAIN = generated(
    FIRST, cited("S1", 0, len(FIRST), 0.3), acceptance=outcome_pb2.ACCEPTANCE_REVIEW_REQUIRED
)
# Two sentences, of which the second has a character outside the basic plane and two marks.
ROTATION = generated(
    FIRST + SECOND,
    cited("S1", 0, len(FIRST), 0.93),
    cited("S1", len(FIRST) + 1, len(FIRST + SECOND), 0.6),
    cited("S2", len(FIRST) + 1, len(FIRST + SECOND), 0.8),
)
