"""Asking: what arrives, what is withdrawn, and what is said when there is no answer."""

import asyncio
import re

import pytest
from google.protobuf.message import Message
from playwright.async_api import Error as PageError
from playwright.async_api import Page, Route, expect

from chassis import identity
from chassis.errors import Unavailable
from chassis.identity import AccessLevel
from gateway.identity import development_token
from sluice.answer.v1 import outcome_pb2
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2
from sluice.retrieve.v1 import retrieve_pb2
from tests.gateway.house import (
    FOUND,
    SEATS,
    WRITTEN,
    House,
    delta,
    final,
    raising,
    retraction,
    returning,
    telling,
    until,
)
from tests.web.browser.visit import (
    FIRST,
    PASSAGE,
    ROTATION,
    SECOND,
    UNCERTAIN,
    Visits,
    ask,
    passage_of,
    prompt,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

ABSTAINED = generate_pb2.GenerateResponse(
    outcome=outcome_pb2.Outcome(
        abstained=outcome_pb2.Abstained(reason=outcome_pb2.ABSTAINED_REASON_EVIDENCE_INSUFFICIENT)
    )
)


async def answered(house: House, visits: Visits) -> Page:
    house.assemble.behaviour = returning(prompt(passage_of("S1", 1), passage_of("S2", 2)))
    house.generate.behaviour = returning(ROTATION)
    page = await visits.open()
    await ask(page)
    await expect(page.locator("#headline:visible")).to_have_text("Answer")
    return page


async def test_a_token_is_asked_for_and_kept_in_the_tab_only(house: House, visits: Visits) -> None:
    page = await visits.open(signed_in=False)
    await page.get_by_label("Bearer token").fill("made up")
    await page.keyboard.press("Enter")
    await expect(page.locator("#token-fault:visible")).to_contain_text("That is no token")
    await page.get_by_label("Bearer token").fill("made.up")
    await page.keyboard.press("Enter")
    await expect(page.locator("#token-fault:visible")).to_contain_text("the token does not hold")
    token = development_token("ana", "acme", AccessLevel.TEAM)
    await page.get_by_label("Bearer token").fill(token)
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Your question")).to_be_focused()
    await expect(page.get_by_label("Bearer token")).to_be_hidden()
    await ask(page)
    await expect(page.locator("#text:visible")).to_contain_text("Rotate it on day 1.")
    assert await page.evaluate("[...Object.values(sessionStorage)]") == [token]
    assert await page.evaluate("localStorage.length + document.cookie.length") == 0
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Bearer token")).to_be_focused()
    assert await page.evaluate("sessionStorage.length") == 0


async def test_stages_and_text_are_shown_as_they_come(house: House, visits: Visits) -> None:
    retrieving, writing = house.retrieve.hold(), asyncio.Event()
    house.assemble.behaviour = returning(prompt(passage_of("S1", 1), passage_of("S2", 2)))
    house.generate.telling = telling(delta(FIRST), writing, delta(SECOND), final(ROTATION))
    page = await visits.open()
    await ask(page)
    stages, text = page.locator("#stages li:visible"), page.locator("#text:visible")
    await expect(stages).to_have_text([re.compile(r"^Searching the documents \d+\.\d s$")])
    retrieving.set()
    await expect(text).to_have_text(FIRST)
    await expect(page.locator("#headline:visible")).to_have_text("Answer, still being checked")
    ended = [re.compile(r"^Search [\d.]+ m?s$"), re.compile(r"^Evidence [\d.]+ m?s$")]
    await expect(stages).to_have_text([*ended, re.compile("^Writing and checking")])
    writing.set()
    await expect(page.locator("#headline:visible")).to_have_text("Answer")
    await expect(text).to_have_text(
        "The password is rotated every ninety days. S1 Tell the owners \U0001f511 first. S1S2"
    )
    await expect(stages).to_have_text([*ended, re.compile(r"^Writing [\d.]+ m?s$")])


async def test_how_the_answer_came_about_is_told(house: House, visits: Visits) -> None:
    page = await answered(house, visits)
    await page.locator("#provenance summary").click()
    told = page.locator("#provenance")
    for said in (
        "1,342 tokens in · 88 tokens out · small",
        "the first choice's allowance was used",
    ):
        await expect(told).to_contain_text(said)
    for name in ("Retrieve", "Assemble", "Generate", "Total"):
        row = told.locator("dl div", has=page.get_by_text(name, exact=True))
        await expect(row.locator("dd")).to_have_text(re.compile(r"^[\d.]+ m?s$"))


async def test_a_click_on_a_mark_opens_the_exact_passage(house: House, visits: Visits) -> None:
    page = await answered(house, visits)
    await page.get_by_role("button", name="S2: Database runbook").click()
    passage = page.get_by_role("dialog", name="S2: Database runbook")
    assert await passage.locator(".document-text").evaluate("e => e.textContent") == PASSAGE
    for name, value in {
        "Document": "runbooks/database-2.md",
        "Version": "2026-03",
        "Section": "Passwords \u203a Rotation",
        "Score": "0.900 (cosine similarity)",
        "Cited for": SECOND.strip(),
        "Support": "80 % of that sentence",
    }.items():
        row = passage.locator("dl div", has=page.get_by_text(name, exact=True))
        await expect(row.locator("dd")).to_have_text(value)
    link = passage.get_by_role("link", name="https://docs.example.org/database")
    assert await link.get_attribute("rel") == "noopener noreferrer"
    await passage.get_by_role("button", name="Close").click()
    await expect(passage).to_be_hidden()


async def test_a_mark_is_opened_and_left_by_keyboard(house: House, visits: Visits) -> None:
    page = await answered(house, visits)
    mark = page.get_by_role("button", name="S1: Database runbook").first
    for _ in range(10):
        await page.keyboard.press("Tab")
        if await mark.evaluate("e => e === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    passage = page.get_by_role("dialog", name="S1: Database runbook")
    await expect(passage).to_contain_text("announce it")
    await expect(passage.get_by_role("button", name="Close")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(passage).to_be_hidden()
    await expect(mark).to_be_focused()


async def test_an_answer_that_comes_in_many_pieces_is_shown_whole(
    house: House, visits: Visits
) -> None:
    large = "All of it is here. " * 20_000
    house.assemble.behaviour = returning(prompt(passage_of("S1", 1, large)))
    page = await visits.open()
    await ask(page)
    await page.get_by_role("button", name="S1: Database runbook").click()
    shown = page.get_by_role("dialog").locator(".document-text")
    assert await shown.evaluate("e => e.textContent") == large


async def test_withdrawn_text_goes_and_it_is_said_why(house: House, visits: Visits) -> None:
    shown = asyncio.Event()
    withdrawn = retraction(outcome_pb2.RETRACTION_REASON_INVALID_OUTPUT)
    house.generate.telling = telling(delta("Never rotate it."), shown, withdrawn, final(WRITTEN))
    page = await visits.open()
    await ask(page)
    await expect(page.locator("#text:visible")).to_have_text("Never rotate it.")
    shown.set()
    await expect(page.locator("#withdrawn:visible")).to_have_text(
        "The text shown so far is withdrawn: it did not hold against the sources."
    )
    await expect(page.locator("#headline:visible")).to_have_text("Quoted from the documents")
    await expect(page.locator("#text:visible")).to_have_text("Rotate it on day 1. S1")


async def test_an_answer_that_needs_a_review_says_so(house: House, visits: Visits) -> None:
    house.generate.behaviour = returning(UNCERTAIN)
    page = await visits.open()
    await ask(page)
    await expect(page.locator("#headline:visible")).to_have_text(
        "An answer that a person has to check"
    )
    await expect(page.locator("#words.notice")).to_contain_text("a person has to check it first")


async def test_an_abstention_is_said_in_plain_words(house: House, visits: Visits) -> None:
    house.generate.behaviour = returning(ABSTAINED)
    page = await visits.open()
    await ask(page)
    await expect(page.locator("#headline:visible")).to_have_text("The documents do not answer this")
    await expect(page.locator("#words:visible")).to_have_text(
        "The documents that you may read do not answer the question."
    )
    await expect(page.locator("#text")).to_be_hidden()
    await expect(page.locator("#evidence")).to_be_hidden()


async def test_without_the_model_the_passages_are_shown(house: House, visits: Visits) -> None:
    house.assemble.behaviour = returning(prompt(passage_of("S1", 1)))
    house.generate.behaviour = raising(Unavailable("down", reason="DOWN"))
    page = await visits.open()
    await ask(page)
    await expect(page.locator("#headline:visible")).to_have_text(
        "AI answers are unavailable; these are the matching passages"
    )
    shown = page.locator("#sources .document-text")
    assert await shown.evaluate("e => e.textContent") == PASSAGE


async def test_restricted_passages_are_shown_to_whom_they_are_for_and_named_so(
    house: House, visits: Visits
) -> None:
    secret = passage_of("S1", 1, "The spare key is with Olga.")
    secret.access_level = evidence_pb2.ACCESS_LEVEL_RESTRICTED

    async def found(request: Message) -> Message:
        readable = identity.current().level is AccessLevel.RESTRICTED
        return FOUND if readable else retrieve_pb2.RetrieveResponse(epoch=7)

    house.retrieve.behaviour = found
    house.assemble.behaviour = returning(prompt(secret))
    house.generate.behaviour = raising(Unavailable("down", reason="DOWN"))
    outside = await visits.open(level=AccessLevel.PUBLIC)
    await ask(outside)
    await expect(outside.locator("#words:visible")).to_have_text(
        "No document that you may read bears on the question."
    )
    assert "Olga" not in await outside.content()
    inside = await visits.open(level=AccessLevel.RESTRICTED)
    await ask(inside)
    await expect(inside.locator("#sources:visible")).to_contain_text("The spare key is with Olga.")
    await expect(inside.locator("#sources .badge:visible")).to_have_text("restricted")


async def test_cancelling_ends_the_work_and_takes_the_text_away(
    house: House, visits: Visits
) -> None:
    house.generate.telling = telling(delta("Half of"), asyncio.Event())
    page = await visits.open()
    await ask(page)
    await expect(page.locator("#text:visible")).to_have_text("Half of")
    await page.get_by_role("button", name="Cancel").click()
    async with asyncio.timeout(10):
        await house.generate.cancelled.wait()
    await expect(page.locator("#withdrawn:visible")).to_have_text(
        "You cancelled this question. The text that had arrived was not final and is withdrawn."
    )
    await expect(page.locator("#text")).to_be_hidden()
    await expect(page.get_by_label("Your question")).to_be_focused()
    house.generate.reset()
    await ask(page)
    await expect(page.locator("#text:visible")).to_contain_text("Rotate it on day 1.")
    await expect(page.locator("#withdrawn")).to_be_hidden()


async def test_a_refusal_is_told_with_the_requests_id(house: House, visits: Visits) -> None:
    release = house.generate.hold()
    asking = [asyncio.create_task(house.ask()) for _ in range(SEATS)]

    async def full() -> bool:
        return len(house.generate.seen) == SEATS

    await until(full)
    page = await visits.open()
    await ask(page)
    refusal = page.locator("#refusal:visible")
    await expect(refusal).to_contain_text("Not possible right now")
    await expect(refusal).to_contain_text(re.compile("Request [0-9a-f]{32}"))
    release.set()
    assert {response.status_code for response in await asyncio.gather(*asking)} == {200}


async def test_a_stream_that_breaks_leaves_no_text(house: House, visits: Visits) -> None:
    page = await visits.open()

    async def half(route: Route) -> None:
        told = 'event: delta\r\ndata: {"text":\r\ndata: "Half of"}\r\n\r\n: beat\n\nevent: answer'
        await route.fulfill(content_type="text/event-stream", body=told)

    await page.route("**/v1/answers", half)
    await ask(page)
    await expect(page.locator("#refusal:visible")).to_contain_text(
        "The connection to the gateway broke"
    )
    await expect(page.locator("#withdrawn:visible")).to_contain_text("is withdrawn")
    await expect(page.locator("#text")).to_be_hidden()
    assert [fault.partition("\n")[0] for fault in visits.faults] == [
        "Error: the stream ended early"
    ]
    visits.faults.clear()


async def test_a_proxy_whose_sign_in_ended_is_not_followed(house: House, visits: Visits) -> None:
    page = await visits.open(signed_in=False)
    await expect(page.get_by_label("Bearer token")).to_be_visible()

    async def elsewhere(route: Route) -> None:
        await route.fulfill(status=302, headers={"Location": "https://login.example.org/"})

    await page.route("**/v1/*", elsewhere)
    await page.reload()
    await expect(page.locator("#refusal:visible")).to_contain_text("Load the page again to sign in")
    await expect(page.get_by_label("Bearer token")).to_be_hidden()


async def test_what_documents_and_models_write_stays_text(house: House, visits: Visits) -> None:
    hostile = (
        "<script>window.ran = true</script><img src='https://evil.example.org/a.png'"
        " onerror='window.ran = true'>![b](https://evil.example.org/b.png)"
        "[press](javascript:alert(1))<style>body{display:none}</style>\u202e<svg onload=alert(1)>"
    )
    page_of = passage_of("S1", 1, hostile)
    page_of.title, page_of.document_id, page_of.version = hostile, hostile, hostile
    page_of.heading_path[:] = [hostile]
    page_of.uri = "javascript:window.ran=true"
    house.assemble.behaviour = returning(prompt(page_of))
    reply = generate_pb2.GenerateResponse()
    reply.CopyFrom(WRITTEN)
    reply.text = f"{hostile} [S1]"
    reply.usage.model = hostile
    house.generate.behaviour = returning(reply)
    page = await visits.open()
    await ask(page, hostile.replace("\n", " "))
    await page.locator(".mark").click()
    passage = page.get_by_role("dialog")
    assert await passage.locator(".document-text").evaluate("e => e.textContent") == hostile
    assert hostile in (await page.locator("#text").text_content() or "")
    await expect(passage).to_contain_text("javascript:window.ran=true")
    assert (
        await page.locator("main img, dialog img, dialog a, main script, main style").count() == 0
    )
    assert await page.evaluate("window.ran") is None


async def test_a_script_that_got_in_after_all_could_do_nothing(visits: Visits) -> None:
    page = await visits.open()
    with pytest.raises(PageError, match="requires 'TrustedHTML'"):
        await page.locator("#text").evaluate("e => { e.innerHTML = '<b>x</b>' }")
    await page.locator("#text").evaluate(
        "e => { const i = new Image(); i.src = 'https://evil.example.org/c.png'; e.append(i) }"
    )
    await expect(page.locator("#text img")).to_have_count(1)
    await page.wait_for_function("document.images[document.images.length - 1].complete")
    policies = [fault for fault in visits.faults if fault.startswith("policy")]
    assert any("img-src" in fault for fault in policies)
    visits.faults.clear()
