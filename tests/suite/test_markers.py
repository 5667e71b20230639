"""Words planted wherever somebody's text or secret goes in, and looked for wherever we tell."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from redis import Redis

from chassis.identity import AccessLevel, Caller, Minter, development_key
from chassis.settings import PREFIX
from gateway.identity import development_token
from local import ports as port_numbers
from local import profile
from local.child import Part
from local.ports import LOOPBACK
from local.run import Run
from local.suite import environment, tiers
from local.supervisor import Event, Policy
from sluice.answer.v1 import answer_pb2, answer_pb2_grpc
from sluice.assemble.v1 import assemble_pb2, assemble_pb2_grpc
from sluice.generate.v1 import generate_pb2, generate_pb2_grpc
from sluice.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from tests.scripted_provider import replies
from tests.scripted_provider.server import Exchange, ScriptedProvider
from tests.suite.collector import Collector

# Words that stand nowhere else. Letters alone, so that no coding changes them; lower case, so that
# they are no names, which an answer may not add.
TEXTS = {
    "question": "zorvaquil",  # by whichever face it comes
    "passage": "plinthemar",
    "title": "grobbelist",
    "heading": "quandrivex",
    "answer": "vellumorph",  # what the model says of its own
    "value": "skarnifold",  # what a caller sends where something else belongs
    "restricted": "hushwendle",
    "system": "obrantique",  # what a caller of the chat face says to the model
}
NAMES = {
    "document": "docquibble",
    "source": "folderwisp",
    "subject": "persimmia",
    "group": "groupelka",
}
SECRETS = {
    "answer key": "sk-answerkeynimbus",
    "embedding key": "sk-embedkeynimbus",
    "cache key": "cachekeynimbus-cachekeynimbus-cachekeynimbus",
    "credential": "ghp_" + "k3Lm9QxT2vRw8sZp4NbYc7HdJ6gF5aXe1uWq",
    "idempotency key": "idemnimbus",
    "false token": "eyJmYWxzZW5pbWJ1cyI6MX0",
}
MARKERS = {**TEXTS, **NAMES, **SECRETS}
TOKEN = re.compile(r"eyJ[\w-]{10,}\.[\w-]{10,}")

SUBJECT = f"{NAMES['subject']}@example.org"
ANA = Caller(
    SUBJECT,
    "demo",
    AccessLevel.TEAM,
    frozenset({NAMES["group"]}),
    frozenset({"ingest", "operator", "drafts"}),
)
STRANGER = replace(ANA, level=AccessLevel.PUBLIC, groups=frozenset(), roles=frozenset())
GREEDY = replace(STRANGER, subject=f"greedy-{SUBJECT}")
DOCUMENT = f"handbook/{NAMES['document']}.md"
TEXT = f"""---
title: The {TEXTS["title"]} handbook
---
# Deployments of {TEXTS["heading"]}

The production deploy window for {TEXTS["passage"]} opens on Tuesday morning and closes at night.
"""
ANSWER = (
    f"The production deploy window for {TEXTS['passage']} opens on Tuesday morning and closes at"
    f" night {TEXTS['answer']} [S1]."
)
QUESTION = f"When does the production deploy window of {TEXTS['question']} open?"
HEAD = '"reason":"FRONT_MATTER_INVALID"'
DIMENSIONS = 384
BURST = 80
LIMIT = 60.0
START_SECONDS = 180.0
PROCESSES = ("ingest", "retrieve", "assemble", "generate", "worker", "gateway")


async def replied(exchange: Exchange) -> None:
    """As the text asks for; in errors the whole request is repeated, with its key."""
    asked = json.dumps(exchange.body)
    said = exchange.body.get("input") or exchange.body["messages"][-1]["content"]
    repeated = f"{exchange.headers.get('authorization')} cannot do: {said}"
    error = {"error": {"message": repeated, "type": "invalid", "code": None}}
    if exchange.path.endswith("/embeddings"):
        good = replies.vectors([[1.0] + [0.0] * (DIMENSIONS - 1)] * len(exchange.body["input"]))
        await (replies.document(error, 400) if "failembed" in asked else good)(exchange)
        return
    told = {
        "fail400": replies.document(error, 400),
        "fail401": replies.document(error, 401),
        "fail429": replies.document(error, 429, {"retry-after": "0"}),
        "fail500": replies.document(error, 500),
        "failtext": replies.document(repeated, 502),
        "failevent": replies.stream(replies.chunk(ANSWER[:9]), replies.event(error)),
        "failjson": replies.stream(b"data: {" + repeated.encode() + b"\n\n"),
        "failcontract": replies.answer(json.dumps({"status": TEXTS["answer"], "answer": 1})),
        "failcut": replies.cut(written()),
        "failstall": replies.stalled(),
    }
    reply = next((one for word, one in told.items() if word in asked), replies.answer(written()))
    await reply(exchange)


def written() -> str:
    return json.dumps({"status": "answered", "answer": ANSWER, "source_ids": ["S1"]})


@dataclass
class Heard:
    """What the suite said to callers: every refusal, and every reply with them."""

    refusals: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)

    def reply(self, text: str, *, refused: bool) -> None:
        self.replies.append(text)
        if refused:
            self.refusals.append(text)


@dataclass(frozen=True, slots=True)
class Left:
    """Everything that a run leaves behind, as text by where it is."""

    heard: Heard
    traces: str
    metrics: Mapping[str, str]
    logs: Mapping[str, str]
    reports: str
    shared: Mapping[str, str]
    jobs: Mapping[str, str]
    provider: str


class Face:
    """The ways in, for one caller. What comes back is kept in `heard`."""

    def __init__(self, run: Run, heard: Heard, caller: Caller) -> None:
        self._run = run
        self._heard = heard
        self._caller = caller
        self.token = development_token(
            caller.subject, caller.tenant, caller.level, groups=caller.groups, roles=caller.roles
        )

    async def http(self, method: str, path: str, **sent: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own
        headers = {"Authorization": f"Bearer {self.token}", **sent.pop("headers", {})}
        async with httpx.AsyncClient(base_url=self._run.url, timeout=LIMIT) as client:
            reply = await client.request(method, path, headers=headers, **sent)
        said = f"{reply.headers} {reply.text}"
        refused = reply.is_error or "event: error" in said or '"isError":true' in said
        self._heard.reply(said, refused=refused or '"error":' in said)
        return reply

    async def ask(self, question: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http("POST", "/v1/answers", json={"question": question}, headers=named)

    async def chat(self, question: str, **more: object) -> httpx.Response:
        said = [
            {"role": "system", "content": TEXTS["system"]},
            {"role": "user", "content": question},
        ]
        body = {"model": "sluice", "messages": said, **more}
        return await self.http("POST", "/v1/chat/completions", json=body)

    async def tool(self, name: str, **arguments: object) -> httpx.Response:
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = {"Accept": "application/json, text/event-stream"}
        return await self.http("POST", "/mcp", json=body, headers=accept)

    async def grpc(self, part: str, stub: Any, method: str, request: Any, token: str = "") -> None:  # noqa: ANN401 - any of any service
        inside = Minter(development_key()).mint(self._caller, part)
        bearer = token or (self.token if part == "gateway_grpc" else inside)
        metadata = [("authorization", f"Bearer {bearer}")]
        async with grpc.aio.insecure_channel(f"{LOOPBACK}:{self._run.ports[part]}") as channel:
            try:
                call = getattr(stub(channel), method)(request, timeout=LIMIT, metadata=metadata)
                said = str(
                    [one async for one in call] if hasattr(call, "__aiter__") else await call
                )
            except grpc.aio.AioRpcError as failure:
                told = [failure.code(), failure.details(), *(failure.trailing_metadata() or ())]
                self._heard.reply(str(told), refused=True)
            else:
                self._heard.reply(said, refused=False)

    async def ended(self, job: str) -> str:
        """The state in which the job ends."""
        async with asyncio.timeout(LIMIT):
            while True:
                state = str((await self.http("GET", job)).json()["state"])
                if state not in {"queued", "running"}:
                    return state
                await asyncio.sleep(0.1)


async def documents(face: Face) -> None:
    path, source = f"/v1/documents/{DOCUMENT}", {"source": NAMES["source"]}
    put = await face.http("PUT", path, content=TEXT, params={**source, "access_level": "team"})
    assert put.status_code == 201, put.text
    hidden = f"# Hidden\n\nThe production deploy window is kept {TEXTS['restricted']}."
    kept = await face.http(
        "PUT",
        f"/v1/documents/hidden/{NAMES['document']}.md",
        content=hidden,
        params={**source, "access_level": "team", "groups": NAMES["group"]},
    )
    assert kept.status_code == 201, kept.text
    await face.http("POST", "/v1/documents:preview", content=TEXT, params={"document_id": DOCUMENT})
    await face.http("GET", "/v1/documents", params=source)
    wrong = f"/v1/documents/wrong/{NAMES['document']}"
    secret = f"# Keys\n\ntoken: {SECRETS['credential']} of {TEXTS['passage']}\n"
    refused = [
        await face.http("PUT", f"{wrong}.md", content=secret),
        await face.http(
            "PUT", f"{wrong}.md", content=f"---\naccess: {TEXTS['value']}\n---\n{TEXT}"
        ),
        await face.http("PUT", f"{wrong}.md", content=f"---\n{TEXTS['value']}: [\n---\n# One"),
        await face.http("PUT", f"{wrong}.pdf", content=f"%PDF-1.7 {TEXTS['passage']}"),
        await face.http("PUT", f"{wrong}.md", content=TEXT.encode() + b"\xff\xfe\x00"),
        await face.http(
            "PUT", f"{wrong}.md", content=TEXT, params={"access_level": TEXTS["value"]}
        ),
        await face.http("PUT", f"{wrong}.md", content=f"# One\n\n{TEXTS['passage']} failembed"),
        await face.http("GET", "/v1/documents", params={"page_token": TEXTS["value"]}),
        await face.http("GET", "/v1/documents", params={"page_size": TEXTS["value"]}),
        await face.http("DELETE", f"{wrong}.md"),
    ]
    assert [one.status_code for one in refused if not one.is_error] == []


async def successes(face: Face) -> None:
    whole = await face.ask(QUESTION)
    assert whole.json()["mode"] == "GENERATED", whole.text
    assert TEXTS["answer"] in whole.text
    streamed = await face.ask(f"{QUESTION} Streamed?", Accept="text/event-stream")
    assert TEXTS["answer"] in streamed.text
    assert "event: answer" in streamed.text
    assert TEXTS["answer"] in (await face.chat(QUESTION)).text
    assert TEXTS["answer"] in (await face.chat(QUESTION, stream=True)).text
    assert TEXTS["answer"] in (await face.tool("answer", question=QUESTION)).text
    assert TEXTS["passage"] in (await face.tool("search_docs", query=QUESTION)).text
    assert TEXTS["passage"] in (await face.http("POST", "/v1/search", json=asked(QUESTION))).text
    ask = answer_pb2.AskRequest(question=QUESTION)
    stub = answer_pb2_grpc.AnswerServiceStub
    await face.grpc("gateway_grpc", stub, "Ask", ask)
    await face.grpc("gateway_grpc", stub, "AskStream", answer_pb2.AskStreamRequest(ask=ask))
    await face.tool("answer", question=QUESTION, later=True)
    named = {"Prefer": "respond-async", "Idempotency_Key": SECRETS["idempotency key"]}
    queued = await face.ask(QUESTION, **named)
    assert queued.status_code == 202, queued.text
    assert (await face.ask(f"{QUESTION} Other?", **named)).status_code == 409
    assert await face.ended(queued.headers["location"]) == "done"


def asked(question: object, **more: object) -> dict[str, object]:
    return {"question": question, **more}


async def refusals(face: Face) -> None:
    value, question = TEXTS["value"], TEXTS["question"]
    bodies: Iterable[dict[str, Any]] = (
        {"json": asked([question])},
        {"json": asked(question, filters={"document_ids": value})},
        {"json": asked(question, filters={"publication_states": [value]})},
        {"json": asked(question, locale=f"{value} {value}")},
        {"json": asked(question, supersedes=value)},
        {"json": asked(question, system_prompt=value)},
        {"json": asked(f"{question} " * 1_000)},
        {"json": asked(f"{question}\x00")},
        {"content": f'{{"question": "{question}'},
        {"content": f'{{"question": "{question} \\ud800"}}'},
        {"content": f'{{"question": "{"x" * 200_000} {question}"}}'},
        {"content": question, "headers": {"Content-Type": "text/plain"}},
        {"json": asked(question), "headers": {"Request-Timeout": value}},
        {
            "json": asked(question),
            "headers": {"Prefer": "respond-async", "Idempotency-Key": f"{value} b"},
        },
        {"json": asked(question), "headers": {"Authorization": f"Bearer {false_token()}"}},
        {"json": asked(question), "headers": {"Authorization": f"Basic {value}"}},
        {"json": asked(question), "headers": {"Request-Timeout": "0.001"}},
        {"json": asked(question), "params": {"q": value}, "headers": {"Authorization": ""}},
    )
    plain = {"Content-Type": "application/json"}
    for body in bodies:
        headers = plain | body.get("headers", {})
        reply = await face.http("POST", "/v1/answers", **{**body, "headers": headers})
        assert reply.is_error or "UNAVAILABLE" in reply.text, body
    for path in (f"/v1/jobs/{value}", f"/v1/{value}", f"/{value}.js"):
        assert (await face.http("GET", path)).is_error
    await face.chat(question, model=value)
    await face.chat(question, tools=[{"type": value}])
    await face.chat(question, response_format={"type": value})
    await face.http("POST", "/v1/chat/completions", json={"model": "sluice", "messages": [value]})
    await face.tool(value, question=question)
    await face.tool("answer", question=[question])
    await face.tool("answer", question=question, limit=value)
    await face.tool("job", job_id=value)
    for message in ({"jsonrpc": value}, [value], {"jsonrpc": "2.0", "id": 1, "method": value}):
        await face.http("POST", "/mcp", json=message, headers={"Accept": "application/json"})


async def inside(face: Face) -> None:
    """Calls of the stages themselves, which no caller can make."""
    value, question = TEXTS["value"], TEXTS["question"]
    filters = retrieve_pb2.Filters(document_ids=[f"{value}\x00"])
    message = assemble_pb2.Message(role=assemble_pb2.ROLE_USER, content=question)
    task = generate_pb2.GenerateRequest(question=question, messages=[message] * 50)
    job = answer_pb2.GetJobRequest(job_id=value)
    calls: Iterable[tuple[str, Any, str, Any]] = (
        ("gateway_grpc", answer_pb2_grpc.AnswerServiceStub, "GetJob", job),
        (
            "gateway_grpc",
            answer_pb2_grpc.AnswerServiceStub,
            "Ask",
            answer_pb2.AskRequest(question=question, filters=filters),
        ),
        (
            "retrieve",
            retrieve_pb2_grpc.RetrieveServiceStub,
            "Retrieve",
            retrieve_pb2.RetrieveRequest(question=question, filters=filters),
        ),
        (
            "retrieve",
            retrieve_pb2_grpc.RetrieveServiceStub,
            "CheckPassages",
            retrieve_pb2.CheckPassagesRequest(epoch=1, point_ids=[value]),
        ),
        (
            "assemble",
            assemble_pb2_grpc.AssembleServiceStub,
            "Assemble",
            assemble_pb2.AssembleRequest(question=f"{question}\x00"),
        ),
        ("generate", generate_pb2_grpc.GenerateServiceStub, "Generate", task),
        (
            "ingest",
            ingest_pb2_grpc.IngestServiceStub,
            "ListDocuments",
            ingest_pb2.ListDocumentsRequest(page_token=value),
        ),
        (
            "ingest",
            ingest_pb2_grpc.IngestServiceStub,
            "ReconcileSource",
            ingest_pb2.ReconcileSourceRequest(source=NAMES["source"]),
        ),
    )
    for part, stub, method, request in calls:
        for token in ("", false_token(), face.token):
            await face.grpc(part, stub, method, request, token)


def false_token() -> str:
    return ".".join([SECRETS["false token"]] * 3)


async def failures(face: Face, provider: ScriptedProvider) -> None:
    """What the provider does wrong, over every face, and in jobs."""
    words = (
        *("failtext", "failjson", "failevent", "failcut", "failcontract"),
        *("fail500", "fail400", "fail401"),
    )
    for word in words:
        failed = await face.ask(f"{QUESTION} {word}")
        assert failed.json()["mode"] == "UNAVAILABLE", (word, failed.text)
        await face.ask(f"{QUESTION} {word} streamed", Accept="text/event-stream")
    await face.chat(f"{QUESTION} fail500")
    await face.tool("answer", question=f"{QUESTION} fail500")
    queued = await face.ask(f"{QUESTION} fail400 later", Prefer="respond-async")
    assert await face.ended(queued.headers["location"]) == "failed"
    before = provider.calls
    stalled = await face.ask(f"{QUESTION} failstall", Prefer="respond-async")
    await provider.arrival(before + 1)  # after the question's embedding
    await face.http("DELETE", stalled.headers["location"])
    assert await face.ended(stalled.headers["location"]) == "cancelled"
    # The last one, since nothing is asked for a while after it.
    throttled = await face.ask(f"{QUESTION} fail429")
    assert throttled.json()["mode"] == "UNAVAILABLE", throttled.text


async def over_limit(face: Face) -> None:
    """More than the seats and more than the allowance."""
    asking = (face.http("POST", "/v1/search", json=asked(QUESTION)) for _ in range(2 * BURST))
    found = {reply.status_code for reply in await asyncio.gather(*asking)}
    assert 429 in found, found


async def not_readable(face: Face) -> None:
    found = await face.ask(QUESTION)
    assert found.json()["mode"] == "ABSTAINED", found.text
    forbidden = await face.http("GET", "/v1/capacity")
    assert forbidden.status_code == 403
    await face.http("PUT", f"/v1/documents/{DOCUMENT}", content=TEXT)


def stored(port: int) -> dict[str, str]:
    """What a Redis holds, by key."""
    found: dict[str, str] = {}
    with Redis(host=LOOPBACK, port=port) as client:
        reads: Mapping[bytes, Any] = {
            b"string": client.get,
            b"hash": client.hgetall,
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
            b"stream": client.xrange,
        }
        for key in client.scan_iter():
            found[key.decode()] = str(reads[client.type(key)](key))
    return found


async def pages(ports: Mapping[str, int]) -> dict[str, str]:
    async with httpx.AsyncClient(timeout=LIMIT) as client:
        return {
            name: (await client.get(f"http://{LOOPBACK}:{port}/metrics")).text
            for name, port in ports.items()
        }


def with_page(part: Part, port: int | None) -> Part:
    told = {f"{PREFIX}METRICS_PORT": str(port)} if port else {}
    return replace(part, environment={**part.environment, **told}, ready_within=START_SECONDS)


def prepared(data: Path, told: Mapping[str, str], report: Any) -> tuple[Run, dict[str, int]]:  # noqa: ANN401
    """A suite whose processes each have a page of metrics, and the ports of those."""
    settings = profile.load("embedded", told)
    free = port_numbers.all_free()
    numbers = {name: port for name, port in free.items() if name not in {"models", "llm"}}
    metrics = dict(zip(PROCESSES, port_numbers.free(len(PROCESSES)), strict=True))
    parts = [
        [with_page(part, metrics.get(part.name)) for part in tier]
        for tier in tiers(data, numbers, environment(data, numbers, settings))
    ]
    run = Run(data, profile="embedded", ports=numbers, tiers=parts, report=report, policy=Policy())
    return run, metrics


async def driven(data: Path) -> Left:
    heard, reports = Heard(), list[Event]()
    with Collector() as collector:
        async with ScriptedProvider(replied) as provider:
            told = {
                "LOG_LEVEL": "debug",
                "OTLP_ENDPOINT": collector.endpoint,
                "ANSWER_MODE": "generated",
                "ANSWER_BASE_URL": provider.base_url,
                "ANSWER_MODEL": "scripted-model",
                "ANSWER_API_KEY": SECRETS["answer key"],
                "ANSWER_CACHE_KEY": SECRETS["cache key"],
                "ANSWER_MAX_ATTEMPTS": "1",
                "ANSWER_EXTRACTIVE_FALLBACK": "false",
                "ANSWER_REQUESTS_PER_MINUTE": "60000",
                "ANSWER_TOKENS_PER_MINUTE": "20000000",
                "ANSWER_IN_FLIGHT": "36",
                "EMBEDDING_BASE_URL": provider.base_url,
                "EMBEDDING_API_KEY": SECRETS["embedding key"],
                "JOB_ATTEMPTS": "1",
                "SUBJECT_REQUESTS_PER_MINUTE": str(BURST + 1),
                "SUBJECT_REQUEST_BURST": str(BURST),
            }
            run, metrics = prepared(
                data, {f"{PREFIX}{name}": text for name, text in told.items()}, reports.append
            )
            async with run:
                ana = Face(run, heard, ANA)
                await documents(ana)
                await successes(ana)
                await not_readable(Face(run, heard, STRANGER))
                await refusals(ana)
                await inside(ana)
                await over_limit(Face(run, heard, GREEDY))
                await failures(ana, provider)
                page = await pages(metrics)
                shared, jobs = stored(run.ports["redis"]), stored(run.ports["jobs"])
            asked = "".join(f"{one.headers} {one.body}" for one in provider.arrivals)
        logs = {path.name: path.read_text() for path in run.logs.iterdir()}
        traces = collector.text()
    return Left(heard, traces, page, logs, str(reports), shared, jobs, asked)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return asyncio.run(driven(tmp_path_factory.mktemp("markers")))


def found_in(text: str) -> set[str]:
    """Which markers stand in it; `token` for any token, ours or made here."""
    folded = text.casefold()
    found = {name for name, marker in MARKERS.items() if marker.casefold() in folded}
    return found | ({"token"} if TOKEN.search(text) else set())


def held_by(kept: Mapping[str, str]) -> dict[str, set[str]]:
    """Which markers stand in the values of each kind of key that holds any."""
    found: dict[str, set[str]] = {}
    for key, value in kept.items():
        found.setdefault(re.sub("[0-9a-f]{32,}", "ID", key), set()).update(found_in(value))
    return {kind: names for kind, names in found.items() if names}


def test_the_markers_were_where_they_belong(left: Left) -> None:
    assert found_in(left.provider) >= {"question", "passage", "answer key", "embedding key"}
    shown = found_in("".join(left.heard.replies))
    assert shown >= {"passage", "title", "heading", "answer", "document"}


def test_no_trace_or_metric_holds_a_marker(left: Left) -> None:
    assert "attempt:fail" in left.traces
    assert found_in(left.traces) == set()
    assert left.metrics.keys() == set(PROCESSES)
    for name, page in left.metrics.items():
        assert f'service_name="sluice-{name}"' in page
        assert found_in(page) == set(), name


def test_no_log_holds_a_marker_but_the_documents_that_changed(left: Left) -> None:
    """Who operates sees which documents came and went, and nothing of what they say."""
    lines = "\n".join(left.logs.values()).splitlines()
    found = [line for line in lines if found_in(line)]
    changed = [json.loads(line) for line in found if found_in(line) == {"document"}]
    assert {line["event"] for line in changed} == {"document_put", "document_deleted"}, found
    assert len(changed) == len(found), found
    assert found_in(left.reports) == set()


def test_no_refusal_repeats_what_was_sent_but_names_and_a_wrong_head(left: Left) -> None:
    """Authors are told of which document or source it is, and which value of its head is none."""
    assert len(left.heard.refusals) > len(PROCESSES)
    for text in left.heard.refusals:
        head = {"value"} if HEAD in text else set()
        assert found_in(text) <= {"document", "source"} | head, text


def test_no_secret_is_told_to_anybody(left: Left) -> None:
    assert found_in("".join(left.heard.replies)) & {*SECRETS, "token"} == set()


def test_redis_holds_answers_and_jobs_and_nothing_beside(left: Left) -> None:
    assert found_in(" ".join([*left.shared, *left.jobs])) == set()
    assert held_by(left.shared) == {"sluice:answer:ID": {"answer", "passage"}}
    assert held_by(left.jobs).keys() == {"sluice:{jobs}:rights:ID", "sluice:{jobs}:job:ID"}
    assert held_by(left.jobs)["sluice:{jobs}:rights:ID"] == {"subject", "group"}
    # All of them have ended, and nobody's rights are kept with them.
    ended = held_by(left.jobs)["sluice:{jobs}:job:ID"]
    assert ended >= {"question", "answer", "passage"}
    assert ended <= {*TEXTS, "document", "group"} - {"value", "system"}
