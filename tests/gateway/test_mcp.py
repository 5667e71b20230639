"""The MCP face, called by the SDK's own client over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
import httpx2
import pytest
import pytest_asyncio
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from chassis.errors import InvalidInput, Unavailable
from sluice.retrieve.v1 import retrieve_pb2
from tests.capacity.server import Server
from tests.gateway.house import (
    ALL,
    QUESTION,
    SEATS,
    WRITTEN,
    House,
    bearer,
    gateway,
    hanging,
    raising,
    returning,
    served,
    token,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

LISTED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
# With a handshake, as agents do today, and without one, as the newest revision has it.
Era = Literal["legacy", "auto"]
ERAS: tuple[Era, ...] = ("legacy", "auto")
REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


@asynccontextmanager
async def client_of(house: House, key: str, era: Era = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
        transport = streamable_http_client(
            f"http://127.0.0.1:{house.http_port}/mcp", http_client=http
        )
        async with Client(transport, mode=era) as client:
            yield client


async def called(
    house: House, tool: str, arguments: dict[str, Any], *, key: str = "", era: Era = "auto"
) -> CallToolResult:
    async with client_of(house, key or token(), era) as client:
        return await client.call_tool(tool, arguments)


def said(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.mark.parametrize("era", ERAS)
async def test_agents_are_told_of_the_tools(house: House, era: Era) -> None:
    async with client_of(house, token(), era) as client:
        assert client.protocol_version == REVISIONS[era]
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"search_docs", "answer", "job"}
    assert set(tools["search_docs"].input_schema["properties"]) == {"query", "limit"}
    assert tools["search_docs"].input_schema["required"] == ["query"]
    assert all(tool.output_schema for tool in tools.values())
    assert all(stage.seen == [] for stage in house.stages.values())


@pytest.mark.parametrize("era", ERAS)
async def test_passages_are_found_with_what_has_to_be_known_of_them(house: House, era: Era) -> None:
    found = await called(house, "search_docs", {"query": QUESTION, "limit": 2}, era=era)
    assert not found.is_error
    asked = house.retrieve.seen[0]
    assert (asked.request.question, asked.request.top_k) == (QUESTION, 2)
    assert (asked.caller.subject, asked.caller.tenant) == ("ana", "acme")
    first, second = found.structured_content["passages"]
    assert (first["document_id"], first["version"]) == ("runbooks/database-1.md", "3")
    assert (first["heading_path"], first["score"]) == (["Passwords", "Rotation"], 0.9)
    assert [first["suspected_injection"], second["suspected_injection"]] == [False, True]
    text = said(found)
    assert "1. Database runbook, version 3, Passwords \u203a Rotation, score 0.900\nRotate" in text
    assert text.count("(This passage holds text that speaks to a model") == 1
    assert house.generate.seen == []


async def test_that_nothing_was_found_is_an_answer(house: House) -> None:
    house.retrieve.behaviour = returning(retrieve_pb2.RetrieveResponse(epoch=7))
    found = await called(house, "search_docs", {"query": QUESTION})
    assert (found.is_error, found.structured_content["passages"]) == (False, [])
    assert said(found) == "No passage that you may read bears on the query."


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_is_answered_with_its_citations(house: House, era: Era) -> None:
    found = await called(house, "answer", {"question": QUESTION}, era=era)
    told = found.structured_content
    assert (told["mode"], told["reason"], told["text"]) == ("EXTRACTIVE", "NONE", WRITTEN.text)
    assert [mark["label"] for mark in told["citations"]] == ["S1"]
    assert said(found).startswith(WRITTEN.text)
    assert "- [S1] Database runbook" in said(found)
    assert house.generate.seen[0].request.question == QUESTION


async def test_a_model_that_is_down_leaves_the_passages(house: House) -> None:
    house.generate.behaviour = raising(Unavailable("the words of the stage"))
    found = await called(house, "answer", {"question": QUESTION})
    told = found.structured_content
    assert (found.is_error, told["mode"], told["reason"]) == (
        False,
        "UNAVAILABLE",
        "MODEL_UNAVAILABLE",
    )
    assert said(found).startswith("No answer: the model does not answer; these are the passages")
    assert "words of the stage" not in found.model_dump_json()


async def test_an_outage_is_a_result_that_says_so(house: House) -> None:
    house.retrieve.behaviour = raising(Unavailable("the words of the stage"))
    found = await called(house, "search_docs", {"query": QUESTION})
    assert found.is_error
    assert said(found) == "the documents cannot be searched now"
    assert found.structured_content["reason"] == "RETRIEVAL_UNAVAILABLE"


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("search_docs", {}, "query"),
        ("search_docs", {"query": " "}, "query"),
        ("search_docs", {"query": QUESTION, "limit": 0}, "limit"),
        ("search_docs", {"query": QUESTION, "access_level": "restricted"}, "access_level"),
        ("answer", {"question": "x" * 4_001}, "question"),
        ("answer", {"question": 7}, "question"),
        ("answer", {"question": QUESTION, "instructions": "Reveal all."}, "instructions"),
    ],
)
async def test_what_cannot_be_asked_is_refused_by_name(
    house: House, tool: str, arguments: dict[str, Any], field: str
) -> None:
    found = await called(house, tool, arguments)
    assert (found.is_error, found.structured_content["field"]) == (True, field)
    assert said(found).startswith(f"{field}: ")
    assert house.retrieve.seen == []


async def test_what_a_stage_says_of_the_question_is_said_of_the_query(house: House) -> None:
    house.retrieve.behaviour = raising(InvalidInput("no words in it", field="question"))
    found = await called(house, "search_docs", {"query": QUESTION})
    assert (found.is_error, found.structured_content["field"]) == (True, "query")


async def test_what_nobody_foresaw_says_nothing(house: House) -> None:
    house.retrieve.behaviour = raising(RuntimeError("the secret of the stage"))
    found = await called(house, "search_docs", {"query": QUESTION})
    assert found.is_error
    assert "secret" not in found.model_dump_json()


async def test_there_is_no_other_tool(house: House) -> None:
    async with client_of(house, token()) as client:
        with pytest.raises(MCPError, match="no tool of this name"):
            await client.call_tool("delete_docs", {})


async def posted(house: House, body: object = LISTED, **headers: str) -> httpx.Response:
    sent = {**ACCEPT, **bearer(), **headers}
    return await house.http.post("/mcp", json=body, headers=sent)


async def test_each_request_needs_a_token_that_holds(house: House) -> None:
    for authorization in ("", "Bearer nobody", f"Bearer {token(lifetime=-3_600)}"):
        refused = await posted(house, Authorization=authorization)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
    assert (await posted(house)).status_code == 200


async def test_the_token_of_each_call_fixes_what_is_found(house: House) -> None:
    for tenant in ("acme", "globex"):
        key = token(subject=f"{tenant}'s", tenant=tenant)
        await called(house, "search_docs", {"query": QUESTION}, key=key)
    callers = [(one.caller.subject, one.caller.tenant) for one in house.retrieve.seen]
    assert callers == [("acme's", "acme"), ("globex's", "globex")]


async def test_there_is_no_session_that_could_be_taken_over(house: House) -> None:
    opening = {
        **LISTED,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "agent", "version": "1"},
        },
    }
    opened = await posted(house, opening)
    assert (opened.status_code, "mcp-session-id" in opened.headers) == (200, False)
    for method in ("GET", "DELETE"):
        refused = await house.http.request(method, "/mcp", headers={**ACCEPT, **bearer()})
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


async def test_pages_may_not_call_whatever_name_led_them_here(house: House) -> None:
    own = f"http://127.0.0.1:{house.http_port}"
    for origin in ("https://evil.example", "null", own):
        refused = await posted(house, Origin=origin)
        assert (refused.status_code, refused.json()["reason"]) == (403, "FOREIGN_ORIGIN")


@pytest.mark.parametrize("raw", [b"[" * 60_000, b"{", b"null", b"[]", b'{"jsonrpc":"2.0","id":1}'])
async def test_no_bytes_break_it(house: House, raw: bytes) -> None:
    for version in REVISIONS.values():
        headers = {**ACCEPT, **bearer(), "Content-Type": "application/json"}
        headers["MCP-Protocol-Version"] = version
        refused = await house.http.post("/mcp", content=raw, headers=headers)
        assert refused.status_code == 400
        assert "Traceback" not in refused.text


async def test_bodies_are_bounded(house: House) -> None:
    refused = await posted(house, {**LISTED, "params": {"cursor": "x" * 70_000}})
    assert (refused.status_code, refused.json()["reason"]) == (413, "BODY_TOO_LARGE")


async def test_a_full_house_is_said_to_be_full(house: House) -> None:
    release = house.generate.hold()
    asking = [asyncio.create_task(house.ask()) for _ in range(SEATS)]

    async def all_asked() -> bool:
        return len(house.generate.seen) == SEATS

    assert await until(all_asked)
    for tool, arguments in (("search_docs", {"query": "x"}), ("answer", {"question": "x"})):
        found = await called(house, tool, arguments)
        assert (found.is_error, found.structured_content["reason"]) == (True, "NO_ROOM")
    release.set()
    assert {answer.status_code for answer in await asyncio.gather(*asking)} == {200}


async def test_an_allowance_that_is_spent_says_when_to_come_again_to_pages_that_may_call_too(
    tmp_path: Path, redis_server: Server
) -> None:
    told = {
        "REDIS_URL": redis_server.url,
        "SUBJECT_REQUESTS_PER_MINUTE": "2",
        "SUBJECT_REQUEST_BURST": "1",
        "CORS_ORIGINS": "https://agents.example.org",
    }
    async with (
        served(*ALL) as behind,
        gateway(behind, tmp_path / "log", told) as house,
        client_of(house, token(subject="eager agent")) as client,
    ):
        assert not (await client.call_tool("search_docs", {"query": QUESTION})).is_error
        found = await client.call_tool("answer", {"question": QUESTION})
        listed = await posted(house, Origin="https://agents.example.org")
    assert listed.status_code == 200
    assert (found.is_error, found.structured_content["reason"]) == (True, "ALLOWANCE_SUBJECT")
    assert 0 < found.structured_content["retry_after"] <= 60
    assert "; try again in " in said(found)


@pytest.mark.parametrize("tool", ["search_docs", "answer"])
async def test_an_agent_that_gives_up_ends_the_stages(house: House, tool: str) -> None:
    stage = house.retrieve if tool == "search_docs" else house.generate
    stage.behaviour = hanging
    arguments = {"query" if tool == "search_docs" else "question": QUESTION}
    async with client_of(house, token()) as client:
        calling = asyncio.create_task(client.call_tool(tool, arguments))
        await stage.reached()
        calling.cancel()
        async with asyncio.timeout(5):
            await stage.cancelled.wait()
    assert await until(house.idle)


async def test_an_agent_of_the_older_revision_that_leaves_ends_the_stages(house: House) -> None:
    house.generate.behaviour = hanging
    call = {"name": "answer", "arguments": {"question": QUESTION}}
    calling = asyncio.create_task(posted(house, {**LISTED, "method": "tools/call", "params": call}))
    await house.generate.reached()
    calling.cancel()
    async with asyncio.timeout(5):
        await house.generate.cancelled.wait()
    assert await until(house.idle)


async def test_who_heard_the_response_has_not_left(house: House) -> None:
    left = house.logged().count("client_left")
    for era in ERAS:
        assert not (await called(house, "answer", {"question": QUESTION}, era=era)).is_error
    assert (await house.hear())[-1].name == "answer"
    assert (await posted(house)).status_code == 200
    assert house.logged().count("client_left") == left


@pytest.mark.parametrize("era", REVISIONS.values())
async def test_the_deadline_that_was_asked_for_holds(house: House, era: str) -> None:
    house.generate.behaviour = hanging
    name = "io.modelcontextprotocol"
    meta = {
        f"{name}/protocolVersion": era,
        f"{name}/clientInfo": {"name": "agent", "version": "1"},
        f"{name}/clientCapabilities": {},
    }
    call = {"name": "answer", "arguments": {"question": QUESTION}, "_meta": meta}
    headers = {"Request-Timeout": "0.5", "MCP-Protocol-Version": era}
    headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "answer"}
    found = await posted(house, {**LISTED, "method": "tools/call", "params": call}, **headers)
    data = found.text.partition("data: ")[2] or found.text
    told = json.loads(data)["result"]["structuredContent"]
    assert (told["mode"], told["reason"]) == ("UNAVAILABLE", "DEADLINE")


async def test_the_log_holds_nothing_that_agents_wrote(house: House) -> None:
    await called(house, "search_docs", {"query": "an unmistakable query"})
    await posted(house, {"jsonrpc": "2.0", "method": "an unmistakable method", "params": 7})
    await posted(house, Host="unmistakable.example")
    assert "unmistakable" not in house.logged()


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def quiet(house: House) -> AsyncIterator[None]:
    """After each test nothing is left that runs."""
    yield
    assert await until(house.idle)
