"""Passages without an answer, as callers see them over HTTP."""

import asyncio
from collections import Counter

import httpx
import pytest

from chassis import identity
from chassis.errors import Exhausted, Forbidden, InvalidInput, Unavailable
from chassis.identity import AccessLevel, Caller
from gateway.admission import Admission, NoRoom, Room
from gateway.flow import Flow
from gateway.question import Question
from gateway.search import Search
from sluice.evidence.v1 import evidence_pb2
from sluice.retrieve.v1 import retrieve_pb2
from tests.gateway.house import (
    QUESTION,
    SEATS,
    House,
    bearer,
    hanging,
    passage,
    raising,
    returning,
    until,
)
from tests.gateway.open_door import Boundless, Everywhere
from tests.gateway.test_admission import refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOUND = retrieve_pb2.RetrieveResponse(
    passages=[passage(1), passage(2)],
    score_space=evidence_pb2.SCORE_SPACE_BM25,
    counts=retrieve_pb2.RetrieveCounts(candidates=9, passed_threshold=4, returned=2),
    epoch=7,
)


async def find(house: House, body: object = None, **headers: str) -> httpx.Response:
    sent = {"question": QUESTION} if body is None else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await house.http.post("/v1/search", json=sent, headers={**bearer(), **named})


async def test_what_is_found_is_shown_with_where_it_stands_and_nothing_else(house: House) -> None:
    house.retrieve.behaviour = returning(FOUND)
    response = await find(house)
    assert response.headers["cache-control"] == "no-store"
    first, second = response.json()["passages"]
    assert response.json() == {
        "passages": [first, second],
        "score_space": "BM25",
        "counts": {"candidates": 9, "passed_threshold": 4, "returned": 2},
    }
    assert first == {
        "document_id": "runbooks/database-1.md",
        "title": "Database runbook",
        "version": "3",
        "heading_path": ["Passwords", "Rotation"],
        "text": "Rotate it on day 1.\n\n| a | b |\n| 1 | 2 |",
        "score": 0.9,
        "suspected_injection": False,
    }
    assert second["suspected_injection"] is True


async def test_it_works_while_no_model_and_no_assembly_is_there(house: House) -> None:
    house.retrieve.behaviour = returning(FOUND)
    await house.generate.stop()
    await house.assemble.stop()
    assert len((await find(house)).json()["passages"]) == 2


async def test_to_find_nothing_is_an_answer(house: House) -> None:
    house.retrieve.behaviour = returning(retrieve_pb2.RetrieveResponse())
    response = await find(house)
    assert (response.status_code, response.json()["passages"]) == (200, [])


async def test_question_filters_and_limit_reach_retrieve_and_nothing_wider_does(
    house: House,
) -> None:
    filters = {"areas": ["ops"], "publication_states": ["draft"]}
    await find(house, {"question": "  why \n not ", "filters": filters, "limit": 7})
    await find(house)
    narrowed, plain = (seen.request for seen in house.retrieve.seen)
    assert (narrowed.question, narrowed.top_k, plain.top_k) == ("why not", 7, 0)
    assert list(narrowed.filters.areas) == ["ops"]
    assert narrowed.filters.publication_states == [evidence_pb2.PUBLICATION_STATE_DRAFT]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"question": ""}, "question"),
        ({}, "question"),
        ({"question": "why", "limit": 0}, "limit"),
        ({"question": "why", "limit": 101}, "limit"),
        ({"question": "why", "limit": "all"}, "limit"),
        ({"question": "why", "locale": "en"}, "locale"),
        ({"question": "why", "tenant": "globex"}, "tenant"),
        ({"question": "why", "filters": {"tenant": "globex"}}, "filters.tenant"),
        ({"question": "why", "filters": {"areas": [""]}}, "filters.areas[0]"),
    ],
)
async def test_a_wrong_field_is_named(house: House, body: object, field: str) -> None:
    assert refusal(await find(house, body)) == (400, "INVALID_INPUT", field)
    assert house.retrieve.seen == []


async def test_whose_passages_are_searched_only_the_token_says(house: House) -> None:
    headers = bearer(tenant="globex", level=AccessLevel.PUBLIC)
    body = {"question": QUESTION, "filters": {"document_ids": ["runbooks/database-1.md"]}}
    await find(house, body, X_Tenant="acme", **headers)
    caller = house.retrieve.seen[0].caller
    assert (caller.tenant, caller.level) == ("globex", AccessLevel.PUBLIC)


async def test_without_a_token_nothing_is_searched(house: House) -> None:
    response = await house.http.post("/v1/search", json={"question": QUESTION})
    assert refusal(response) == (401, "UNAUTHENTICATED", None)
    assert house.retrieve.seen == []


async def test_without_retrieve_it_is_a_503(house: House) -> None:
    await house.retrieve.stop()
    response = await find(house)
    assert refusal(response) == (503, "RETRIEVAL_UNAVAILABLE", None)
    assert "retrieve" not in response.json()["detail"]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Unavailable("qdrant: no route"), (503, "RETRIEVAL_UNAVAILABLE", None)),
        (Exhausted("no tokens", retry_after=2.5), (503, "CAPACITY", None)),
        (Forbidden("drafts need the role", reason="ROLE_MISSING"), (403, "ROLE_MISSING", None)),
        (
            InvalidInput("no such area", field="filters.areas"),
            (400, "INVALID_INPUT", "filters.areas"),
        ),
        (InvalidInput("too many", field="top_k"), (500, "INTERNAL", None)),
        (RuntimeError("secret"), (500, "INTERNAL", None)),
    ],
)
async def test_what_retrieve_refuses_is_told_in_the_gateways_words(
    house: House, failure: Exception, told: tuple[int, str, str | None]
) -> None:
    house.retrieve.behaviour = raising(failure)
    response = await find(house)
    assert refusal(response) == told
    assert "qdrant" not in response.text
    assert "secret" not in response.text
    assert (response.headers.get("retry-after") == "3") is isinstance(failure, Exhausted)


async def test_a_search_that_takes_too_long_is_a_504(house: House) -> None:
    house.retrieve.behaviour = hanging
    assert refusal(await find(house, Request_Timeout="0.3")) == (504, "DEADLINE", None)
    assert await until(house.idle)


async def test_a_client_that_leaves_ends_the_search_and_frees_its_seat(house: House) -> None:
    house.retrieve.behaviour = hanging
    searching = asyncio.create_task(find(house))
    await house.retrieve.reached()
    searching.cancel()
    await asyncio.gather(searching, return_exceptions=True)
    async with asyncio.timeout(5):
        await house.retrieve.cancelled.wait()
    assert await until(house.idle)


async def test_searches_take_the_same_seats_and_allowance_as_questions(house: House) -> None:
    release = house.retrieve.hold()
    asking = [asyncio.create_task(find(house)) for _ in range(SEATS)]

    async def all_in() -> bool:
        return len(house.retrieve.seen) == SEATS

    assert await until(all_in)
    for refused in (await find(house), await house.ask()):
        assert refusal(refused) == (503, "NO_ROOM", None)
        assert "ratelimit" in refused.headers
    release.set()
    assert {(await found).status_code for found in asking} == {200}


async def test_a_refused_search_is_counted_and_reaches_no_stage() -> None:
    identity.enter(Caller("ana", "acme", AccessLevel.TEAM))
    room = Room(1, Everywhere())
    # Neither has a stage: to reach one is an error.
    flow: Flow[object, evidence_pb2.Source] = Flow(None, None, None)  # type: ignore[arg-type] # see above
    admission = Admission(Boundless(), room, flow)
    search: Search[object] = Search(admission.admitted, None)  # type: ignore[arg-type] # see above
    async with room.seat():
        with pytest.raises(NoRoom):
            await search.find(Question("why"), 0)
    assert admission.refusals == Counter(NO_ROOM=1)
