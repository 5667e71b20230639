"""Whatever is sent over HTTP, nothing breaks and every refusal is a problem."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from urllib.parse import quote, urlencode

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from chassis.identity import AccessLevel
from gateway.admission import Admission, Room
from gateway.answer import Found, Prompt, Written
from gateway.documents import Documents, Heading
from gateway.door import Door
from gateway.flow import Flow
from gateway.identity import development_issuer, development_token
from gateway.jobs.desk import Desk
from gateway.levels import Levels
from gateway.places import SharedPlaces
from gateway.question import Question
from gateway.readiness import Parts
from gateway.routes import web_app
from gateway.search import Counts, Matches, Search
from gateway.store import Store
from gateway.telling import Telling
from gateway.wire import filters_message, header_message
from sluice.evidence.v1.evidence_pb2 import Passage, Source
from sluice.ingest.v1 import ingest_pb2
from sluice.retrieve.v1.retrieve_pb2 import RetrieveRequest
from tests.gateway.house import bearer
from tests.gateway.open_door import Boundless, Everywhere


class Stages:
    """Finds nothing, but puts the question on the wire as the real adapter does."""

    async def retrieve(self, question: Question) -> Found[Passage]:
        filters = filters_message(question.filters)
        RetrieveRequest(question=question.text, filters=filters).SerializeToString()
        return Found([], "", 0)

    async def search(self, question: Question, limit: int) -> Matches[Passage]:
        filters = filters_message(question.filters)
        request = RetrieveRequest(question=question.text, filters=filters, top_k=limit)
        request.SerializeToString()
        return Matches([], "", 0, Counts(0, 0, 0))

    async def gone(
        self, question: Question, epoch: int, sources: Sequence[Source]
    ) -> frozenset[str]:
        raise RuntimeError("nothing was found")

    async def assemble(self, question: Question, found: Found[Passage]) -> Prompt[Source]:
        raise RuntimeError("nothing was found")

    def as_found(self, passages: Sequence[Passage]) -> Sequence[Source]:
        raise RuntimeError("nothing was found")

    async def generate(self, question: Question, prompt: Prompt[Source]) -> Written:
        raise RuntimeError("nothing was found")

    async def stream(
        self, question: Question, prompt: Prompt[Source], telling: Telling[Source]
    ) -> Written:
        raise RuntimeError("nothing was found")


class Shelf:
    """Holds nothing, but puts what it is given on the wire as the real adapter does."""

    async def page(self, source: str, size: int, token: str) -> ingest_pb2.ListDocumentsResponse:
        request = ingest_pb2.ListDocumentsRequest(source=source, page_size=size, page_token=token)
        request.SerializeToString()
        return ingest_pb2.ListDocumentsResponse()

    async def put(
        self, heading: Heading, parts: AsyncIterator[bytes]
    ) -> ingest_pb2.PutDocumentResponse:
        header_message(heading).SerializeToString()
        async for _ in parts:
            pass
        return ingest_pb2.PutDocumentResponse(outcome=ingest_pb2.PUT_OUTCOME_UNCHANGED)

    async def preview(
        self, heading: Heading, parts: AsyncIterator[bytes]
    ) -> ingest_pb2.PreviewDocumentResponse:
        raise RuntimeError("nobody previews")

    async def delete(self, document_id: str) -> bool:
        ingest_pb2.DeleteDocumentRequest(document_id=document_id).SerializeToString()
        return True


STAGES = Stages()
ROOM = Room(1, Everywhere())
FLOW = Flow(STAGES, STAGES, STAGES)
ADMISSION = Admission(Boundless(), ROOM, FLOW)
LEVELS = Levels({}, ROOM, SharedPlaces(Store.connect("unix:///nowhere", 1), 1, 1, 1), {})
SEARCH = Search(ADMISSION.admitted, STAGES)
DOCUMENTS = Documents(Shelf())
ISSUER, PARTS = development_issuer(), Parts([])
DESK = Desk(ADMISSION, FLOW, None)
APP = web_app(Door(DESK, SEARCH, ISSUER, PARTS, LEVELS, 5, DOCUMENTS, 5, 100))
JSON = {"Content-Type": "application/json"}

# Every code point, lone surrogates among them.
TEXT = st.text(st.characters(codec=None, categories=["Cs", "Cc", "L", "N", "P", "Z"]), max_size=30)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
TEXTS = st.lists(TEXT, max_size=3)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "document_types": TEXTS | VALUE,
        "document_ids": TEXTS | VALUE,
        "areas": TEXTS | VALUE,
        "publication_states": st.lists(st.sampled_from(["draft", "published"])) | VALUE,
    },
)
QUESTION = st.fixed_dictionaries(
    {"question": TEXT | VALUE}, optional={"filters": FILTERS | VALUE, "locale": TEXT | VALUE}
)


def post(content: bytes, headers: dict[str, str], address: str = "/v1/answers") -> httpx.Response:
    async def once() -> httpx.Response:
        transport = httpx.ASGITransport(app=APP, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            return await client.post(address, content=content, headers=headers)

    return asyncio.run(once())


def is_sound(response: httpx.Response) -> bool:
    """An answer as it was asked for, or a refusal that is the caller's to mend."""
    kind, status = response.headers["content-type"], response.status_code
    if status != 200:
        told = (kind, response.json()["status"]) == ("application/problem+json", status)
        return told and status in {400, 401, 413, 415}
    if kind == "application/json":
        told = response.json()
        return "NOTHING_FOUND" in told.values() or told["passages"] == []
    streamed = kind == "text/event-stream; charset=utf-8"
    return streamed and response.text.rpartition("event: ")[2].startswith("answer")


@settings(max_examples=40, deadline=None)
@given(QUESTION | VALUE)
def test_no_json_breaks_the_gateway(body: object) -> None:
    assert is_sound(post(json.dumps(body).encode(), {**bearer(), **JSON}))


@settings(max_examples=25, deadline=None)
@given(QUESTION, VALUE | st.integers(1, 100))
def test_no_search_breaks_the_gateway(question: dict[str, object], limit: object) -> None:
    body = json.dumps(question | {"limit": limit}).encode()
    assert is_sound(post(body, {**bearer(), **JSON}, "/v1/search"))


NAME = st.sampled_from(
    ["source", "title", "groups", "access_level", "publication_state", "page_size", "page_token"]
)
QUERY = st.lists(st.tuples(NAME, st.binary(max_size=20) | st.just("draft")), max_size=5)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["PUT", "GET", "DELETE"]), st.binary(max_size=30), QUERY, st.binary(max_size=99)
)
def test_no_address_of_a_document_breaks_the_gateway(
    method: str, name: bytes, query: list[tuple[str, bytes | str]], content: bytes
) -> None:
    token = development_token("ed", "acme", AccessLevel.TEAM, roles=["ingest"])
    address = "/v1/documents" if method == "GET" else f"/v1/documents/{quote(name, safe='')}"

    async def once() -> httpx.Response:
        transport = httpx.ASGITransport(app=APP, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            url, headers = f"{address}?{urlencode(query)}", {"Authorization": f"Bearer {token}"}
            return await client.request(method, url, content=content, headers=headers)

    response = asyncio.run(once())
    assert response.status_code in {200, 204} or response.json()["status"] in {400, 404}


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200), st.binary(max_size=20))
def test_no_bytes_break_the_gateway(raw: bytes, inside: bytes) -> None:
    for content in (raw, b'{"question": "' + inside + b'"}', b'{"question": ' + inside + b"}"):
        assert is_sound(post(content, {**bearer(), **JSON}))


HEADER = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "Authorization": HEADER | HEADER.map("Bearer {}".format),
            "Content-Type": HEADER | st.just("application/json; charset=utf-8"),
            "Request-Timeout": HEADER | st.floats().map(str),
            "X-Request-Id": HEADER,
            "traceparent": HEADER,
            "baggage": HEADER,
            "Content-Encoding": HEADER,
            "Accept": HEADER
            | st.just("text/event-stream")
            | HEADER.map("text/event-stream;{}".format),
        },
    )
)
def test_no_header_breaks_the_gateway(headers: dict[str, str]) -> None:
    assert is_sound(post(b'{"question": "why"}', {**bearer(), **JSON, **headers}))
