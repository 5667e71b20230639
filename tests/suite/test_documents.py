"""Documents of every format over HTTP, from the door to the index and out again."""

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from chassis.identity import AccessLevel
from gateway.identity import development_token
from tests.suite.conftest import CONTENT, EXAMPLES, Running

FORMATS = EXAMPLES / "formats"
PIECE = 1_000
MOST = 16 * 1024 * 1024  # bytes, as the gateway's default
MARKDOWN = b"""---
title: Fog signals
version: "3"
---
# Sounding

The fog horn at Skarholm sounds twice a minute in thick weather.
"""
PLAIN = b"A pilot boards at the outer buoy when the swell is below two metres."
# What comes in under which id and of which kind, and what is asked of it.
DOCUMENTS: Mapping[str, tuple[bytes, str, str]] = {
    "signals/fog.md": (MARKDOWN, "", "How often does the fog horn at Skarholm sound?"),
    "pilots.txt": (PLAIN, "text/plain", "Where does a pilot board when the swell is low?"),
    "gauge": (
        (FORMATS / "tide-gauge.html").read_bytes(),
        "text/html; charset=utf-8",
        "What does a level above 2.8 m at the tide gauge mean?",
    ),
    "mooring.pdf": (
        (FORMATS / "mooring.pdf").read_bytes(),
        "application/octet-stream",
        "How long is the stern line for mooring a ship?",
    ),
    "decks/lifejackets.docx": (
        (FORMATS / "lifejackets.docx").read_bytes(),
        "",
        "How many life jackets are on the car deck?",
    ),
}


@pytest.fixture
def editor(suite: Running) -> Iterator[httpx.Client]:
    with client(suite, "ed", "ingest") as found:
        yield found


def client(suite: Running, subject: str, *roles: str) -> httpx.Client:
    token = development_token(subject, "harbour", AccessLevel.TEAM, roles=roles)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=suite.url, headers=headers, timeout=60)


def in_pieces(content: bytes) -> Iterator[bytes]:
    """A body without a length."""
    for start in range(0, len(content), PIECE):
        yield content[start : start + PIECE]


def put(editor: httpx.Client, name: str, content: bytes, kind: str) -> tuple[int, Any]:
    headers = {"Content-Type": kind} if kind else {}
    reply = editor.put(f"/v1/documents/{name}", content=in_pieces(content), headers=headers)
    return reply.status_code, reply.json()["outcome"]


def listed(editor: httpx.Client, size: int) -> list[dict[str, Any]]:
    """All pages."""
    found, token = [], ""
    while True:
        page = {"page_size": str(size), "page_token": token}
        said = editor.get("/v1/documents", params=page).json()
        found += said["documents"]
        token = said["next_page_token"]
        if not token:
            return found


def found_in(editor: httpx.Client, question: str) -> list[str]:
    found = editor.post("/v1/search", json={"question": question}).json()
    return [passage["document_id"] for passage in found["passages"]]


def test_documents_of_every_format_come_in_are_found_and_go_out(editor: httpx.Client) -> None:
    for name, (content, kind, question) in DOCUMENTS.items():
        shown = editor.post(
            "/v1/documents:preview",
            params={"document_id": name},
            content=content,
            headers={"Content-Type": kind} if kind else {},
        )
        assert shown.json()["chunks"], name
        assert name not in found_in(editor, question)
        assert put(editor, name, content, kind) == (201, "added"), name
        assert put(editor, name, content, kind) == (200, "unchanged"), name
        assert found_in(editor, question)[0] == name

    documents = listed(editor, 2)
    assert [one["document_id"] for one in documents] == sorted(DOCUMENTS)
    (fog,) = [one for one in documents if one["document_id"] == "signals/fog.md"]
    assert (fog["metadata"]["title"], fog["metadata"]["version"]) == ("Fog signals", "3")
    name, (content, kind, question) = next(iter(DOCUMENTS.items()))
    answer = editor.post("/v1/answers", json={"question": question}).json()
    assert answer["mode"] in CONTENT
    assert "twice a minute" in answer["text"]

    changed = content.replace(b"twice", b"once")
    assert put(editor, name, changed, kind) == (200, "updated")
    assert "once a minute" in editor.post("/v1/answers", json={"question": question}).json()["text"]
    for name, (_, _, question) in DOCUMENTS.items():
        assert editor.delete(f"/v1/documents/{name}").status_code == 204
        assert editor.delete(f"/v1/documents/{name}").status_code == 404
        assert name not in found_in(editor, question)
    assert listed(editor, 100) == []
    gone = editor.post("/v1/answers", json={"question": question}).json()
    assert (gone["mode"], gone["reason"]) == ("ABSTAINED", "NOTHING_FOUND")


def test_a_refused_document_says_why_while_it_still_comes_and_leaves_nothing(
    suite: Running, editor: httpx.Client
) -> None:
    path, large = "/v1/documents/large.md", b"A word. " * (MOST // 8)
    refused = [
        editor.put(path, content=large + b"."),
        editor.put(f"{path}?uri=ftp://a", content=large),
        editor.put(path, content=b"\0" * 4_000_000),
        editor.put("/v1/documents/a.xyz", content=b"what"),
    ]
    told = [(one.status_code, one.json()["reason"], one.json().get("field")) for one in refused]
    assert told == [
        (413, "BODY_TOO_LARGE", None),
        (400, "INVALID_INPUT", "uri"),
        (400, "BINARY", "body"),
        (400, "UNSUPPORTED_FORMAT", "Content-Type"),
    ]
    with client(suite, "ana") as reader:
        assert reader.put(path, content=PLAIN).status_code == 403
        assert reader.get("/v1/documents").status_code == 403
    assert httpx.put(f"{suite.url}{path}", content=PLAIN).status_code == 401
    assert listed(editor, 100) == []
