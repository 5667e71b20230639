"""Whatever chat front ends and agents send, nothing breaks and every refusal has their shape."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.house import bearer
from tests.gateway.test_fuzz import JSON, TEXT, VALUE, post

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
PART = st.fixed_dictionaries({"type": st.just("text") | TEXT}, optional={"text": TEXT | VALUE})
SAID = st.fixed_dictionaries(
    {"role": st.sampled_from(ROLES) | VALUE}, optional={"content": TEXT | st.lists(PART) | VALUE}
)
OPTIONS = (
    *("stream", "stream_options", "n", "tools", "functions"),
    *("response_format", "logprobs", "top_logprobs", "audio"),
)
CHAT = st.fixed_dictionaries(
    {"model": st.just("sluice") | TEXT, "messages": st.lists(SAID, max_size=3) | VALUE},
    optional=dict.fromkeys(OPTIONS, VALUE),
)

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALL = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["answer", "search_docs"]) | TEXT,
        "arguments": st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("question", "query", "limit"), TEXT | VALUE)
        )
        | VALUE,
    },
    optional={"_meta": st.just(META) | VALUE},
)
METHODS = ("tools/call", "tools/list", "initialize", "ping", "logging/setLevel")
MESSAGE = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": st.sampled_from(METHODS) | TEXT},
    optional={"id": st.integers() | TEXT | VALUE, "params": CALL | VALUE},
)
VERSIONS = st.sampled_from(["2025-11-25", "2026-07-28", "1"])


@settings(max_examples=40, deadline=None)
@given(CHAT | VALUE)
def test_no_json_breaks_chat_completions(body: object) -> None:
    found = post(json.dumps(body).encode(), {**bearer(), **JSON}, "/v1/chat/completions")
    assert found.status_code in {200, 400, 404}
    if found.status_code != 200:
        assert set(found.json()["error"]) == {"message", "type", "param", "code"}
    if found.headers["content-type"].startswith("text/event-stream"):
        assert found.text.endswith("data: [DONE]\n\n")


@settings(max_examples=40, deadline=None)
@given(MESSAGE | VALUE, VERSIONS)
def test_no_json_breaks_mcp(body: object, version: str) -> None:
    headers = {
        **bearer(),
        **JSON,
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "answer",
    }
    found = post(json.dumps(body).encode(), headers, "/mcp")
    assert found.status_code in {200, 202, 400, 404}
    assert "Traceback" not in found.text
