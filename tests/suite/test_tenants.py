"""A tenant reaches nothing of another by any way in, and cannot tell that it is there.

Each way in is called by a stranger twice: with ids that another tenant has, and with ids that
nobody has. Both calls have to end alike.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import grpc
import httpx
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from chassis.identity import AccessLevel, Caller, Minter, development_key
from gateway.identity import development_token
from sluice.answer.v1 import answer_pb2, answer_pb2_grpc
from sluice.assemble.v1 import assemble_pb2, assemble_pb2_grpc
from sluice.evidence.v1 import evidence_pb2
from sluice.generate.v1 import generate_pb2, generate_pb2_grpc
from sluice.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from tests.suite.conftest import Running
from tests.suite.test_messages import rpcs

QUESTION = "When is the production deploy window?"
ROLES = frozenset({"ingest", "operator", "drafts"})
OWNER = Caller("ana", "demo", AccessLevel.RESTRICTED, frozenset({"sre"}), ROLES)
# Of another tenant, with every right there.
STRANGER = replace(OWNER, tenant="globex")
LIMIT = 30.0
# What differs between any two answers.
PASSING = re.compile(
    r'"(answer_?id|request_?id|id|created|elapsed|milliseconds|revision|epoch|total|retrieve'
    r'|assemble|generate|embedding|search|tokens|level|input_?tokens|point_?id|job_?id|embedded|reused)"\s*:\s*("[^"]*"|[0-9.e-]+|null)',
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Guess:
    """What a stranger names: a document, its source, a passage and a job."""

    document: str
    source: str
    passage: str
    job: str

    @property
    def text(self) -> str:
        return f"# Two\n\nWhat everybody knows of {self.document}."

    def hidden_in(self, said: str) -> str:
        """What was said, without what the stranger named and what differs anyway."""
        for name in (self.document, self.source, self.passage, self.job, token_of(self.document)):
            said = said.replace(name, "NAMED")
        return PASSING.sub("", said)


def token_of(document: str) -> str:
    return base64.urlsafe_b64encode(document.encode()).decode()


class Doors:
    """Ways into a running suite, for one caller."""

    def __init__(self, suite: Running, client: httpx.Client, caller: Caller) -> None:
        token = development_token(
            caller.subject, caller.tenant, caller.level, groups=caller.groups, roles=caller.roles
        )
        self.bearer = {"Authorization": f"Bearer {token}"}
        self._suite = suite
        self._client = client
        self._caller = caller

    def http(self, method: str, path: str, **sent: Any) -> str:  # noqa: ANN401 - httpx's own
        headers = {**self.bearer, **sent.pop("headers", {})}
        reply = self._client.request(method, path, headers=headers, **sent)
        return f"{reply.status_code} {reply.text}"

    def grpc(self, part: str, call: Callable[[grpc.Channel], Any], request: Any) -> str:  # noqa: ANN401 - any call of any stub
        inside = Minter(development_key()).mint(self._caller, part)
        bearer = self.bearer["Authorization"] if part == "gateway_grpc" else f"Bearer {inside}"
        with grpc.insecure_channel(f"127.0.0.1:{self._suite.ports[part]}") as channel:
            try:
                reply = call(channel)(request, timeout=LIMIT, metadata=[("authorization", bearer)])
                messages = [reply] if isinstance(reply, Message) else list(reply)
            except grpc.RpcError as failure:
                return f"{failure.code()} {failure.details()}"
        return "".join(json_format.MessageToJson(one) for one in messages)


Way = Callable[[Doors, Guess], str]


def asked(path: str) -> Way:
    def ask(doors: Doors, guess: Guess) -> str:
        body = {"question": QUESTION, "filters": {"document_ids": [guess.document]}}
        return doors.http("POST", path, json=body)

    return ask


def answered(doors: Doors, guess: Guess) -> str:
    """Now, and later in the place of a job."""
    later = {"question": QUESTION, "supersedes": guess.job}
    queued = doors.http("POST", "/v1/answers", json=later, headers={"Prefer": "respond-async"})
    return asked("/v1/answers")(doors, guess) + queued


def listed(doors: Doors, guess: Guess) -> str:
    pages = [{"source": guess.source}, {"page_token": token_of(guess.document)}]
    return "".join(doors.http("GET", "/v1/documents", params=page) for page in pages)


def put(doors: Doors, guess: Guess) -> str:
    """And gone again, so that a later way in does not find it."""
    path = f"/v1/documents/{guess.document}"
    return doors.http("PUT", path, content=guess.text) + doors.http("DELETE", path)


def deleted(doors: Doors, guess: Guess) -> str:
    return doors.http("DELETE", f"/v1/documents/{guess.document}")


def previewed(doors: Doors, guess: Guess) -> str:
    named = {"document_id": guess.document, "source": guess.source}
    return doors.http("POST", "/v1/documents:preview", params=named, content=guess.text)


def chatted(doors: Doors, guess: Guess) -> str:
    said = [{"role": "user", "content": f"{QUESTION} {guess.document}"}]
    body = {"model": "sluice", "messages": said}
    return doors.http("POST", "/v1/chat/completions", json=body)


def called(doors: Doors, guess: Guess) -> str:
    headers = {"Accept": "application/json, text/event-stream"}
    tools = [("search_docs", {"query": QUESTION}), ("answer", {"question": guess.document})]
    messages = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": told},
        }
        for name, told in tools
    ]
    return "".join(doors.http("POST", "/mcp", json=one, headers=headers) for one in messages)


def job(method: str) -> Way:
    return lambda doors, guess: doors.http(method, f"/v1/jobs/{guess.job}")


def plain(path: str) -> Way:
    return lambda doors, _: doors.http("GET", path)


ROUTES: Mapping[tuple[str, str], Way] = {
    ("post", "/v1/answers"): answered,
    ("post", "/v1/search"): asked("/v1/search"),
    ("get", "/v1/documents"): listed,
    ("put", "/v1/documents/{document_id}"): put,
    ("delete", "/v1/documents/{document_id}"): deleted,
    ("post", "/v1/documents:preview"): previewed,
    ("post", "/v1/chat/completions"): chatted,
    ("get", "/v1/models"): plain("/v1/models"),
    ("post", "/mcp"): called,
    ("get", "/v1/capacity"): plain("/v1/capacity"),
    ("get", "/v1/status"): plain("/v1/status"),
    ("get", "/healthz"): plain("/healthz"),
    ("get", "/v1/jobs/{job_id}"): job("GET"),
    ("delete", "/v1/jobs/{job_id}"): job("DELETE"),
}


def answering(doors: Doors, method: str, request: Message) -> str:
    return doors.grpc(
        "gateway_grpc",
        lambda channel: getattr(answer_pb2_grpc.AnswerServiceStub(channel), method),
        request,
    )


def question(guess: Guess) -> answer_pb2.AskRequest:
    filters = retrieve_pb2.Filters(document_ids=[guess.document])
    return answer_pb2.AskRequest(question=QUESTION, filters=filters)


def ingesting(doors: Doors, method: str, request: object) -> str:
    return doors.grpc(
        "ingest",
        lambda channel: getattr(ingest_pb2_grpc.IngestServiceStub(channel), method),
        request,
    )


def parts(kind: Callable[..., Message], guess: Guess) -> Iterator[Message]:
    header = ingest_pb2.DocumentHeader(document_id=guess.document, source=guess.source)
    return iter([kind(header=header), kind(data=guess.text.encode())])


def pages(doors: Doors, guess: Guess) -> str:
    requests = [
        ingest_pb2.ListDocumentsRequest(source=guess.source),
        ingest_pb2.ListDocumentsRequest(page_token=token_of(guess.document)),
    ]
    return "".join(ingesting(doors, "ListDocuments", request) for request in requests)


def reconciled(doors: Doors, guess: Guess) -> str:
    request = ingest_pb2.ReconcileSourceRequest(source=guess.source, allow_empty=True)
    return ingesting(doors, "ReconcileSource", request)


def retrieving(doors: Doors, method: str, request: Message) -> str:
    return doors.grpc(
        "retrieve",
        lambda channel: getattr(retrieve_pb2_grpc.RetrieveServiceStub(channel), method),
        request,
    )


def found(doors: Doors, guess: Guess) -> str:
    filters = retrieve_pb2.Filters(document_ids=[guess.document])
    request = retrieve_pb2.RetrieveRequest(question=QUESTION, filters=filters)
    return retrieving(doors, "Retrieve", request)


def checked(doors: Doors, guess: Guess) -> str:
    request = retrieve_pb2.CheckPassagesRequest(epoch=1, point_ids=[guess.passage])
    return retrieving(doors, "CheckPassages", request)


def assembled(doors: Doors, guess: Guess) -> str:
    """This stage and the next keep no documents: they know what they are sent."""
    passage = evidence(guess)
    return doors.grpc(
        "assemble",
        lambda channel: assemble_pb2_grpc.AssembleServiceStub(channel).Assemble,
        assemble_pb2.AssembleRequest(question=QUESTION, candidates=[passage]),
    )


def written(method: str) -> Way:
    def write(doors: Doors, guess: Guess) -> str:
        task = generate_pb2.GenerateRequest(
            question=QUESTION,
            messages=[assemble_pb2.Message(role=assemble_pb2.ROLE_USER, content=QUESTION)],
            sources=[source(guess)],
            input_tokens=50,
        )
        streamed = generate_pb2.GenerateStreamRequest(task=task)
        return doors.grpc(
            "generate",
            lambda channel: getattr(generate_pb2_grpc.GenerateServiceStub(channel), method),
            streamed if method == "GenerateStream" else task,
        )

    return write


def evidence(guess: Guess) -> evidence_pb2.Passage:
    return evidence_pb2.Passage(
        point_id=guess.passage,
        document_id=guess.document,
        blocks=[evidence_pb2.Block(text="The window is on Tuesday.")],
        score=0.9,
    )


def source(guess: Guess) -> evidence_pb2.Source:
    passage = evidence(guess)
    return evidence_pb2.Source(
        label="S1",
        document_id=guess.document,
        included_text=passage.blocks[0].text,
        blocks=passage.blocks,
        passages=[passage],
        score=0.9,
    )


def stored(doors: Doors, guess: Guess) -> str:
    """And gone again."""
    request = parts(ingest_pb2.PutDocumentRequest, guess)
    return ingesting(doors, "PutDocument", request) + removed(doors, guess)


def removed(doors: Doors, guess: Guess) -> str:
    request = ingest_pb2.DeleteDocumentRequest(document_id=guess.document)
    return ingesting(doors, "DeleteDocument", request)


def shown(doors: Doors, guess: Guess) -> str:
    return ingesting(doors, "PreviewDocument", parts(ingest_pb2.PreviewDocumentRequest, guess))


def switched(doors: Doors, _: Guess) -> str:
    """It names nothing."""
    return ingesting(doors, "SwitchCollection", ingest_pb2.SwitchCollectionRequest())


ANSWER, INGEST = "/sluice.answer.v1.AnswerService", "/sluice.ingest.v1.IngestService"
RETRIEVE, GENERATE = "/sluice.retrieve.v1.RetrieveService", "/sluice.generate.v1.GenerateService"
CALLS: Mapping[str, Way] = {
    f"{ANSWER}/Ask": lambda doors, guess: answering(doors, "Ask", question(guess)),
    f"{ANSWER}/AskStream": lambda doors, guess: answering(
        doors, "AskStream", answer_pb2.AskStreamRequest(ask=question(guess))
    ),
    f"{ANSWER}/GetJob": lambda doors, guess: answering(
        doors, "GetJob", answer_pb2.GetJobRequest(job_id=guess.job)
    ),
    f"{ANSWER}/CancelJob": lambda doors, guess: answering(
        doors, "CancelJob", answer_pb2.CancelJobRequest(job_id=guess.job)
    ),
    f"{INGEST}/PutDocument": stored,
    f"{INGEST}/PreviewDocument": shown,
    f"{INGEST}/DeleteDocument": removed,
    f"{INGEST}/ListDocuments": pages,
    f"{INGEST}/ReconcileSource": reconciled,
    f"{INGEST}/SwitchCollection": switched,
    f"{RETRIEVE}/Retrieve": found,
    f"{RETRIEVE}/CheckPassages": checked,
    "/sluice.assemble.v1.AssembleService/Assemble": assembled,
    f"{GENERATE}/Generate": written("Generate"),
    f"{GENERATE}/GenerateStream": written("GenerateStream"),
}


@pytest.fixture(scope="module")
def client(examples: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=examples.url, timeout=LIMIT) as client:
        yield client


@pytest.fixture(scope="module")
def owner(examples: Running, client: httpx.Client) -> Doors:
    return Doors(examples, client, OWNER)


@pytest.fixture(scope="module")
def stranger(examples: Running, client: httpx.Client) -> Doors:
    return Doors(examples, client, STRANGER)


@pytest.fixture(scope="module")
def view(owner: Doors) -> str:
    """What the owner sees, before any stranger comes."""
    return owners_view(owner)


@pytest.fixture(scope="module")
def owned(owner: Doors) -> Guess:
    """What the owner has."""
    answer = json.loads(owner.http("POST", "/v1/answers", json={"question": QUESTION})[4:])
    (first, *_) = answer["sources"]
    queued = owner.http(
        "POST", "/v1/answers", json={"question": QUESTION}, headers={"Prefer": "respond-async"}
    )
    assert queued.startswith("202 "), queued
    listed = json.loads(owner.http("GET", "/v1/documents", params={"page_size": "1000"})[4:])
    (source,) = {
        one["source"] for one in listed["documents"] if one["document_id"] == first["document_id"]
    }
    return Guess(
        first["document_id"], source, first["passages"][0], json.loads(queued[4:])["job_id"]
    )


def nobodys(owned: Guess) -> Guess:
    """Ids of the same look and length that nobody has."""
    document = re.sub("[aeiou]", "y", owned.document)
    return Guess(document, f"{owned.source}x", str(uuid4()), uuid4().hex)


def owners_view(doors: Doors) -> str:
    listed = doors.http("GET", "/v1/documents", params={"page_size": "1000"})
    return listed + doors.http("POST", "/v1/search", json={"question": QUESTION})


def test_every_way_in_has_its_row(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {(method, path) for path, methods in paths.items() for method in methods} == set(ROUTES)
    assert {rpc.path for rpc in rpcs()} == set(CALLS)


@pytest.mark.parametrize(
    "way", [*ROUTES, *CALLS], ids=lambda way: " ".join([way] if isinstance(way, str) else way)
)
def test_a_stranger_hears_of_what_another_tenant_has_as_of_what_nobody_has(
    owner: Doors, stranger: Doors, owned: Guess, view: str, way: str | tuple[str, str]
) -> None:
    call = ROUTES[way] if isinstance(way, tuple) else CALLS[way]
    guessed, unknown = owned, nobodys(owned)
    told = guessed.hidden_in(call(stranger, guessed))
    assert told == unknown.hidden_in(call(stranger, unknown))
    assert owners_view(owner) == view


def test_what_another_tenant_has_stored_spares_a_stranger_nothing(
    owner: Doors, stranger: Doors
) -> None:
    """No vector of another's is handed on, which would tell that the text is there."""
    text = f"# Kestrel\n\n{uuid4()} is the kestrel's number."
    path = f"/v1/documents/{uuid4()}.md"
    mine, theirs = (
        json.loads(doors.http("PUT", path, content=text)[4:]) for doors in (owner, stranger)
    )
    for doors in (owner, stranger):
        assert doors.http("DELETE", path).startswith("204")
    assert (mine["outcome"], mine["embedded"], mine["reused"]) == ("added", 1, 0)
    assert {**theirs, "epoch": 0} == {**mine, "epoch": 0}
