"""Documents over HTTP: in as they come, listed, previewed and out, each tenant its own."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from chassis.errors import Conflict, Exhausted, InvalidInput, Unavailable
from chassis.identity import AccessLevel
from gateway.documents import UPLOADS
from gateway.identity import development_token
from sluice.evidence.v1 import evidence_pb2
from sluice.ingest.v1 import ingest_pb2 as pb
from tests.capacity.server import Server
from tests.gateway.house import ALL, House, bearer, gateway, served, until
from tests.gateway.library import Library
from tests.gateway.test_admission import refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOST = 300_000
TEXT = b"# One\n\nTwo."
ID = "runbooks/database password.md"
PATH = "/v1/documents/runbooks/database%20password.md"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing(
    tmp_path_factory: pytest.TempPathFactory, redis_server: Server
) -> AsyncIterator[House]:
    """A gateway that takes in documents of MOST bytes."""
    log = tmp_path_factory.mktemp("gateway") / "log"
    told = {"DOCUMENT_BYTES": str(MOST), "REDIS_URL": redis_server.url}
    async with served(*ALL) as behind, gateway(behind, log, told) as house:
        yield house


@pytest.fixture
def library(house: House) -> Library:
    return house.ingest.library


def editor(tenant: str = "acme", **more: str) -> dict[str, str]:
    token = development_token("ed", tenant, AccessLevel.TEAM, roles=["ingest"])
    return {"Authorization": f"Bearer {token}", **more}


async def put(
    house: House,
    content: bytes | AsyncIterator[bytes] = TEXT,
    path: str = PATH,
    sent: dict[str, str] | None = None,
    **headers: str,
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {**editor(), **(sent or {}), **named}
    return await house.http.put(path, content=content, headers=sent)


async def in_pieces(size: int, piece: int = 50_000) -> AsyncIterator[bytes]:
    for start in range(0, size, piece):
        yield b"x" * min(piece, size - start)


async def test_a_document_is_new_then_unchanged_then_updated(
    house: House, library: Library
) -> None:
    first, second, third = [await put(house, content) for content in (TEXT, TEXT, b"# New")]
    assert [reply.status_code for reply in (first, second, third)] == [201, 200, 200]
    assert first.json() == {
        "outcome": "added",
        "revision": "r1",
        "chunks": 2,
        "embedded": 0,
        "reused": 0,
        "epoch": 3,
    }
    assert [reply.json()["outcome"] for reply in (second, third)] == ["unchanged", "updated"]
    assert library.held == {("acme", ID): b"# New"}


async def test_what_is_said_of_a_document_reaches_ingest(house: House, library: Library) -> None:
    query = (
        "source=wiki&title=T%C3%A9&version=2&area=ops&document_type=runbook&publication_state=draft"
        "&access_level=restricted&groups=sre&groups=dba&uri=https://docs.example.org/a"
    )
    await put(house, path=f"{PATH}?{query}", Content_Type="text/html; charset=utf-8")
    await put(house, Content_Type="application/octet-stream")
    full, plain = library.headers
    assert full == pb.DocumentHeader(
        document_id=ID,
        format=pb.DOCUMENT_FORMAT_HTML,
        source="wiki",
        metadata=pb.DocumentMetadata(
            title="Té",
            version="2",
            area="ops",
            document_type="runbook",
            publication_state=evidence_pb2.PUBLICATION_STATE_DRAFT,
            access_level=evidence_pb2.ACCESS_LEVEL_RESTRICTED,
            groups=["sre", "dba"],
            uri="https://docs.example.org/a",
        ),
    )
    assert (plain.format, plain.source) == (pb.DOCUMENT_FORMAT_UNSPECIFIED, "http")
    assert plain.metadata == pb.DocumentMetadata()


async def test_a_body_without_a_length_is_counted_and_handed_on_in_small_parts(
    house: House, library: Library
) -> None:
    assert (await put(house, in_pieces(MOST))).status_code == 201
    assert sum(library.sizes) == MOST
    assert max(library.sizes) < MOST
    for content in (in_pieces(MOST + 1), b"x" * (MOST + 1), in_pieces(2 * MOST)):
        assert refusal(await put(house, content)) == (413, "BODY_TOO_LARGE", None)
    assert len(library.held[("acme", ID)]) == MOST


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [
        ("publication_state=live", {}, "publication_state"),
        ("access_level=root", {}, "access_level"),
        ("", {"Content-Type": "image/png"}, "Content-Type"),
        ("", {"Content-Type": "application/x-www-form-urlencoded"}, "Content-Type"),
        ("", {"Request-Timeout": "0"}, "Request-Timeout"),
    ],
)
async def test_a_wrong_field_is_named(
    house: House, library: Library, query: str, headers: dict[str, str], field: str
) -> None:
    response = await put(house, path=f"{PATH}?{query}", sent=headers)
    assert refusal(response)[::2] == (400, field)
    assert library.held == {}


async def test_a_compressed_body_is_refused(house: House) -> None:
    response = await put(house, Content_Encoding="gzip")
    assert refusal(response) == (400, "INVALID_INPUT", "Content-Encoding")


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            InvalidInput("bad", field="header.metadata.title", reason="X"),
            (400, "X", "title"),
        ),
        (InvalidInput("empty", field="data", reason="EMPTY"), (400, "EMPTY", "body")),
        (InvalidInput("no", field="header.format", reason="U"), (400, "U", "Content-Type")),
        (InvalidInput("no", field="header.document_id"), (400, "INVALID_INPUT", "document_id")),
        (Conflict("moved", reason="EPOCH_MOVED"), (409, "EPOCH_MOVED", None)),
        (Exhausted("full", reason="NO_ROOM_TO_PREPARE", retry_after=2), (503, "CAPACITY", None)),
        (Unavailable("qdrant: secret"), (503, "DOCUMENTS_UNAVAILABLE", None)),
        (RuntimeError("secret"), (500, "INTERNAL", None)),
    ],
)
async def test_what_ingest_refuses_is_told_with_the_field_as_it_was_sent(
    house: House, library: Library, failure: Exception, told: tuple[int, str, str | None]
) -> None:
    library.failure = failure
    response = await put(house)
    assert refusal(response) == told
    assert "secret" not in response.text
    assert response.headers.get("retry-after") == ("2" if isinstance(failure, Exhausted) else None)


async def test_without_ingest_every_route_is_a_503(house: House) -> None:
    await house.ingest.stop()
    replies = [
        await put(house),
        await house.http.get("/v1/documents", headers=editor()),
        await house.http.delete(PATH, headers=editor()),
        await house.http.post("/v1/documents:preview?document_id=a.md", headers=editor()),
    ]
    assert {refusal(reply) for reply in replies} == {(503, "DOCUMENTS_UNAVAILABLE", None)}
    await house.ingest.start()

    async def back() -> bool:
        return (await house.http.get("/v1/documents", headers=editor())).status_code == 200

    assert await until(back)


async def test_documents_are_listed_page_by_page(house: House, library: Library) -> None:
    for name in ("a.md", "b/c.md", "d.md"):
        await put(house, path=f"/v1/documents/{name}")
    first = await house.http.get("/v1/documents?page_size=2&source=wiki", headers=editor())
    token = first.json()["next_page_token"]
    second = await house.http.get(f"/v1/documents?page_token={token}", headers=editor())
    pages = [[one["document_id"] for one in page.json()["documents"]] for page in (first, second)]
    assert pages == [["a.md", "b/c.md"], ["d.md"]]
    assert second.json()["next_page_token"] == ""
    assert first.json()["documents"][0]["metadata"]["access_level"] == "team"
    for wrong in ("page_size=0", "page_size=1001", "page_size=all"):
        response = await house.http.get(f"/v1/documents?{wrong}", headers=editor())
        assert refusal(response) == (400, "INVALID_INPUT", "page_size")
    assert len(library.held) == 3


async def test_a_document_is_deleted_once(house: House, library: Library) -> None:
    await put(house)
    gone = await house.http.delete(PATH, headers=editor())
    assert (gone.status_code, gone.content, library.held) == (204, b"", {})
    again = await house.http.delete(PATH, headers=editor())
    assert refusal(again) == (404, "NO_SUCH_DOCUMENT", None)


async def test_a_preview_shows_the_passages_and_stores_nothing(
    house: House, library: Library
) -> None:
    url = "/v1/documents:preview?document_id=a.md"
    shown = await house.http.post(url, content=TEXT, headers=editor())
    assert shown.json()["chunks"] == [
        {
            "heading_path": ["One"],
            "text": TEXT.decode(),
            "tokens": 5,
            "suspected_injection": False,
        }
    ]
    assert (shown.json()["metadata"]["title"], library.held) == ("a.md", {})
    nameless = await house.http.post("/v1/documents:preview", content=TEXT, headers=editor())
    assert refusal(nameless) == (400, "INVALID_INPUT", "document_id")


async def test_a_tenant_reaches_nothing_of_another(house: House, library: Library) -> None:
    await put(house)
    other = editor("globex", **{"X-Tenant": "acme"})
    listed = await house.http.get("/v1/documents?tenant=acme", headers=other)
    assert listed.json()["documents"] == []
    assert (await house.http.delete(f"{PATH}?tenant=acme", headers=other)).status_code == 404
    added = await house.http.put(f"{PATH}?tenant=acme", content=b"theirs", headers=other)
    assert added.status_code == 201
    assert library.held == {("acme", ID): TEXT, ("globex", ID): b"theirs"}


async def test_only_the_role_opens_the_routes(house: House, library: Library) -> None:
    for headers, told in (({}, (401, "UNAUTHENTICATED")), (bearer(), (403, "ROLE_MISSING"))):
        replies = [
            await house.http.put(PATH, content=TEXT, headers=headers),
            await house.http.get("/v1/documents", headers=headers),
            await house.http.delete(PATH, headers=headers),
            await house.http.post(
                "/v1/documents:preview?document_id=a.md", content=TEXT, headers=headers
            ),
        ]
        assert {refusal(reply)[:2] for reply in replies} == {told}
    assert (library.held, library.headers) == ({}, [])


async def test_an_upload_that_takes_too_long_is_a_504(house: House, library: Library) -> None:
    library.release = asyncio.Event()
    assert refusal(await put(house, Request_Timeout="0.3")) == (504, "DEADLINE", None)


@pytest.mark.parametrize("complete", [True, False])
async def test_a_client_that_leaves_ends_the_upload(
    house: House, library: Library, *, complete: bool
) -> None:
    if complete:
        library.release = asyncio.Event()
    length = len(TEXT) if complete else 1_000
    head = (
        f"PUT {PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: {editor()['Authorization']}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    )
    _, writer = await asyncio.open_connection("127.0.0.1", house.http_port)
    writer.write(head.encode() + TEXT)
    async with asyncio.timeout(5):
        await library.begun.wait()
        writer.transport.abort()
        await library.ended.wait()
    assert library.held == {}


async def test_no_more_documents_come_in_at_once_than_there_is_room_for(
    house: House, library: Library
) -> None:
    library.release = asyncio.Event()
    paths = [f"/v1/documents/{number}.md" for number in range(UPLOADS + 1)]
    putting = [asyncio.create_task(put(house, path=path)) for path in paths]
    done, _ = await asyncio.wait(putting, return_when=asyncio.FIRST_COMPLETED, timeout=10)
    assert [refusal(await one) for one in done] == [(503, "NO_ROOM", None)]
    library.release.set()
    assert sorted([(await one).status_code for one in putting]) == [201] * UPLOADS + [503]


async def test_what_is_said_of_documents_never_reaches_the_log(house: House) -> None:
    marker = "zanzibar-4712"
    await put(house, path=f"{PATH}?title={marker}")
    await house.http.get(f"/v1/documents?page_size={marker}", headers=editor())

    async def logged() -> bool:
        return "request_refused" in house.logged()

    assert await until(logged)
    assert marker not in house.logged()


async def test_the_contract_is_published(house: House) -> None:
    paths = (await house.http.get("/openapi.json")).json()["paths"]
    assert set(paths["/v1/documents/{document_id}"]) == {"put", "delete"}
    for path, method in (
        ("/v1/documents/{document_id}", "put"),
        ("/v1/documents:preview", "post"),
        ("/v1/documents", "get"),
        ("/v1/search", "post"),
    ):
        assert {"200", "4XX", "5XX"} <= set(paths[path][method]["responses"])
    assert "text/markdown" in json.dumps(paths["/v1/documents/{document_id}"]["put"])
    assert set(paths["/v1/status"]["get"]["responses"]) == {"200"}
