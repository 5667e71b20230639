"""The command before stages that a test holds in its hand."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import asyncio
import json
import signal
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from chassis import identity
from chassis.edge import Edge
from chassis.errors import InvalidInput
from chassis.identity import AccessLevel, Caller, Verifier, development_key
from cli import evaluation, exits
from cli.evaluation import Plan
from cli.evidence_service import Search
from cli.output import Output
from cli.questioning import Stages
from gateway.identity import development_issuer
from sluice.assemble.v1 import assemble_pb2, assemble_pb2_grpc
from sluice.evidence.v1 import evidence_pb2
from sluice.ingest.v1 import ingest_pb2
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from tests.cli.stage import Stage, served
from tests.cli.test_command import ANSWER, begun

GOLD: list[dict[str, Any]] = [
    {
        "id": "covered",
        "category": "plain",
        "question": "When are deploys?",
        "asker": {"level": "team", "groups": ["sre"]},
        "relevant": [{"document": "S1.md", "grade": 2}],
        "locale": "pt",
    },
    {"id": "outside", "category": "nothing", "question": "Who?", "asker": {"level": "public"}},
]
TEXT = "Deploys run on Monday."
ABSTAINED = {
    **ANSWER,
    "mode": "ABSTAINED",
    "reason": "EVIDENCE_INSUFFICIENT",
    "acceptance": None,
    "text": "",
    "citations": [],
    "sources": [],
}


@dataclass(slots=True)
class Retrieve(retrieve_pb2_grpc.RetrieveServiceServicer):
    """Always finds S1.md. Keeps the requests and who sent them."""

    requests: list[retrieve_pb2.RetrieveRequest] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)

    async def Retrieve(  # noqa: N802 - the contract's name
        self, request: retrieve_pb2.RetrieveRequest, _context: object
    ) -> retrieve_pb2.RetrieveResponse:
        self.requests.append(request)
        self.callers.append(identity.current())
        passage = evidence_pb2.Passage(document_id="S1.md", score=0.9, point_id="p")
        return retrieve_pb2.RetrieveResponse(
            passages=[passage],
            score_space=evidence_pb2.SCORE_SPACE_COSINE,
            embedding_profile="profile",
            chunking_version="v1",
        )

    async def CheckPassages(  # noqa: N802
        self, _request: retrieve_pb2.CheckPassagesRequest, _context: object
    ) -> retrieve_pb2.CheckPassagesResponse:
        return retrieve_pb2.CheckPassagesResponse()


class Assemble(assemble_pb2_grpc.AssembleServiceServicer):
    """Admits one source, whatever was found."""

    async def Assemble(  # noqa: N802 - the contract's name
        self, _request: assemble_pb2.AssembleRequest, _context: object
    ) -> assemble_pb2.AssembleResponse:
        block = evidence_pb2.Block(text=TEXT, kind=evidence_pb2.BLOCK_KIND_PARAGRAPH, end=len(TEXT))
        source = evidence_pb2.Source(
            label="S1", document_id="S1.md", included_text=TEXT, blocks=[block], score=0.9
        )
        return assemble_pb2.AssembleResponse(sources=[source], instructions_version="en-1")


@dataclass(slots=True)
class Gateway:
    """Answers `covered` only. The first questions get the `refusals`; `held` lets them wait."""

    refusals: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: Request) -> Response:
        body = await request.json()
        token = request.headers["authorization"].removeprefix("Bearer ")
        self.bodies.append(body)
        self.callers.append(development_issuer().verify(token))
        self.arrived.set()
        await self.free.wait()
        if self.refusals:
            return JSONResponse(self.refusals.pop(), status_code=429)
        return JSONResponse(ANSWER if body["question"] == GOLD[0]["question"] else ABSTAINED)


class Kept(Output):
    """Keeps the document that programs would read."""

    def __init__(self) -> None:
        super().__init__(as_json=True)
        self.said: Any = None

    def document(self, value: object) -> None:
        self.said = value


@dataclass(frozen=True, slots=True)
class Told:
    code: int
    document: Any


@dataclass(frozen=True, slots=True)
class Suite:
    """The stages that an evaluation asks, and the folder that it runs in."""

    folder: Path
    ingest: Stage
    retrieve: Retrieve
    gateway: Gateway

    def gold(self, *cases: dict[str, Any], **top: object) -> str:
        path = self.folder / "gold.yaml"
        path.write_text(json.dumps({"questions": cases or GOLD, **top}))
        return str(path)

    async def evaluate(self, gold: str, **changed: Any) -> Told:  # noqa: ANN401 - fields of a plan
        """What one run tells programs; the plan is that of the command's defaults."""
        plain = Plan(Path(gold), Stages(), Search(), repeat=1, at_once=4, out=self.folder / "evals")
        output = Kept()
        code = await evaluation.run(replace(plain, **changed), self.folder, output)
        return Told(code, output.said)

    @property
    def written(self) -> list[Path]:
        return sorted((self.folder / "evals").glob("*"))


@asynccontextmanager
async def serving(name: str, add: Callable[[grpc.aio.Server], None]) -> AsyncIterator[str]:
    """A stage behind the real edge; its address."""
    verifier = Verifier(development_key().public_key(), name)

    async def verify(token: str) -> Caller:
        return verifier.verify(token)

    server = grpc.aio.server(interceptors=[Edge(verify, 60)])
    add(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def answering() -> AsyncIterator[tuple[Gateway, str]]:
    gateway = Gateway()
    gateway.free.set()
    listener = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/v1/answers", gateway.answer, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield gateway, f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        gateway.free.set()
        server.should_exit = True
        await serving


@pytest.fixture
async def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Suite]:
    retrieve = Retrieve()
    adding = partial(retrieve_pb2_grpc.add_RetrieveServiceServicer_to_server, retrieve)
    assembling = partial(assemble_pb2_grpc.add_AssembleServiceServicer_to_server, Assemble())
    async with (
        served() as ingest,
        serving("retrieve", adding) as at,
        serving("assemble", assembling) as assemble,
        answering() as (gateway, url),
    ):
        for name in ("S1.md", "S2.md"):
            meta = ingest_pb2.DocumentMetadata(
                access_level=evidence_pb2.ACCESS_LEVEL_TEAM,
                publication_state=evidence_pb2.PUBLICATION_STATE_PUBLISHED,
            )
            ingest.documents[name] = ingest_pb2.Document(document_id=name, metadata=meta, chunks=1)
        monkeypatch.setenv("SLUICE_INGEST_TARGET", ingest.address)
        monkeypatch.setenv("SLUICE_RETRIEVE_TARGET", at)
        monkeypatch.setenv("SLUICE_ASSEMBLE_TARGET", assemble)
        monkeypatch.setenv("SLUICE_GATEWAY_URL", url)
        yield Suite(tmp_path, ingest, retrieve, gateway)


async def test_figures_are_told_kept_and_shown_on_a_page_for_their_owner_only(
    suite: Suite,
) -> None:
    gates = [{"metric": "answers.correct", "at_least": 1}]
    told = await suite.evaluate(suite.gold(gates=gates))
    assert told.code == exits.OK
    assert told.document["groups"][""]["retrieval.rr@1"] == {
        "value": 1,
        "count": 1,
        "low": None,
        "high": None,
    }
    assert told.document["settings"]["embedding_profile"] == "profile"
    assert told.document["settings"]["documents"] == 2
    assert [path.suffix for path in suite.written] == [".html", ".json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in suite.written} == {0o600}
    assert told.document["files"] == [str(path) for path in reversed(suite.written)]


async def test_people_read_figures_what_went_wrong_gates_and_files(
    suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {**GOLD[0], "question": "When not?"}
    gates = [
        {"metric": "answers.answered", "at_least": 0.5},
        {"metric": "answers.review", "at_most": 0, "for_full": True},
    ]
    told = await suite.evaluate(suite.gold(wrong, GOLD[1], gates=gates))
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in capsys.readouterr().err.splitlines()
    ]
    assert ["ndcg", "1.000", "1.000", "1.000", "1.000"] in rows
    assert ["covered", "answered", "ABSTAINED EVIDENCE_INSUFFICIENT"] in rows
    assert ["answers.answered", "at_least 0.5", "0", "1", "FAILED"] in rows
    full = "FAILED no case has this figure (for mode full)"
    assert ["answers.review", "at_most 0", "", "0", full] in rows
    assert [[name] for name in told.document["files"]] == rows[-2:]


async def test_everybody_asks_as_the_gold_set_says(suite: Suite) -> None:
    await suite.evaluate(suite.gold(), tenant="acme")
    questions = (body["question"] for body in suite.gateway.bodies)
    asked = dict(zip(questions, suite.gateway.callers, strict=True))
    team, public = asked["When are deploys?"], asked["Who?"]
    assert (team.level.label, team.groups, team.tenant) == ("team", {"sre"}, "acme")
    assert (public.level.label, public.groups) == ("public", frozenset())
    assert {body["locale"] for body in suite.gateway.bodies} == {"pt", ""}
    assert {caller.tenant for caller in suite.retrieve.callers} == {"acme"}


async def test_a_gate_that_fails_is_exit_code_1_and_a_run_can_be_compared(suite: Suite) -> None:
    first = await suite.evaluate(suite.gold())
    gates = suite.folder / "gates.yaml"
    gates.write_text(
        "gates:\n- {metric: answers.correct, at_least: 1, categories: [plain]}\n"
        "- {metric: answers.answered, may_fall: 0}\n"
    )
    wrong = suite.gold({**GOLD[0], "question": "When not?"}, GOLD[1])
    baseline = Path(first.document["files"][0])
    second = await suite.evaluate(wrong, baseline=baseline, gates=gates)
    assert second.code == exits.INCOMPLETE
    assert [gate["passed"] for gate in second.document["gates"]] == [False, False]
    changed = second.document["comparison"]["regressions"]
    assert [(one["id"], one["what"]) for one in changed] == [("covered", "outcome")]


@pytest.mark.parametrize(
    ("cases", "top", "said"),
    [
        ([{**GOLD[0], "relevant": [{"document": "x", "grade": 1}]}], {}, "x is not in the corpus"),
        ([{**GOLD[0], "asker": {"level": "public"}}], {}, "the asker may not read S1.md"),
        (GOLD, {"gates": [{"metric": "answers.luck", "at_most": 1}]}, "there is no 'answers.luck'"),
        ([GOLD[1], GOLD[1]], {}, "more than one case is outside"),
    ],
)
async def test_an_input_error_ends_the_run_before_anybody_is_asked(
    suite: Suite, cases: list[dict[str, Any]], top: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await suite.evaluate(suite.gold(*cases, **top))
    assert said in refusal.value.message
    assert exits.code_of(refusal.value) == exits.USAGE
    assert [*suite.gateway.bodies, *suite.retrieve.requests, *suite.written] == []


async def test_one_stage_alone_is_searched_as_told(suite: Suite) -> None:
    only = Stages(answer=False)
    await suite.evaluate(suite.gold(), stages=only, search=Search("sparse", 0.25))
    sent = suite.retrieve.requests
    assert suite.gateway.bodies == []
    assert {request.mode for request in sent} == {retrieve_pb2.SEARCH_MODE_SPARSE}
    assert {request.diversity for request in sent} == {0.25}
    assert len(sent) == len(GOLD) + 1


async def test_who_finds_the_gateway_full_asks_again_and_repeats_are_apart(suite: Suite) -> None:
    suite.gateway.refusals = [{"detail": "full", "reason": "BUSY", "retry_after": 0.01}] * 2
    told = await suite.evaluate(suite.gold(), repeat=2, stages=Stages(retrieve=False))
    assert told.code == exits.OK
    assert [len(case["answers"]) for case in told.document["cases"]] == [2, 2]
    assert len(suite.gateway.bodies) == 4 + 2
    assert told.document["groups"][""]["answers.same_outcome"]["value"] == 1


async def test_ctrl_c_says_how_far_it_came_and_writes_nothing(suite: Suite) -> None:
    suite.gateway.free.clear()
    process = await begun(suite.folder, "eval", suite.gold(), "--stage", "answer")
    async with asyncio.timeout(60):
        await suite.gateway.arrived.wait()
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
    assert process.returncode == exits.INTERRUPTED
    assert err.decode().splitlines() == [
        "stopped",
        "0 of 2 calls were made; no results are written",
    ]
    assert not (suite.folder / ".sluice").exists()


async def test_a_folder_of_a_benchmark_brings_its_corpus(suite: Suite) -> None:
    folder = suite.folder / "bench"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"_id": "S1", "title": "Deploys", "text": "Monday."}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "When?"}\n')
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tS1\t1\n")
    suite.ingest.documents.clear()
    only = Stages(answer=False)
    with pytest.raises(InvalidInput, match=r"S1\.md is not in the corpus"):
        await suite.evaluate(str(folder), stages=only)
    brought = await suite.evaluate(str(folder), stages=only, bring_in=True)
    assert suite.ingest.contents == {"S1.md": b"# Deploys\n\nMonday.\n"}
    assert {caller.tenant for caller in suite.ingest.callers} == {"bench"}
    assert brought.document["groups"][""]["retrieval.ndcg@10"]["value"] == 1


async def test_thresholds_are_swept_by_the_rules_of_generate(suite: Suite) -> None:
    covered = [{**GOLD[0], "id": str(number)} for number in range(6)]
    outside = [{**GOLD[1], "id": str(number)} for number in range(6, 12)]
    told = await suite.evaluate(suite.gold(*covered, *outside), calibrate=True)
    support, score = told.document["calibration"]
    assert (support["setting"], support["current"]) == ("SLUICE_EXTRACTIVE_LEAST_SUPPORT", 0.52)
    assert (score["setting"], score["space"]) == ("SLUICE_SCORE_THRESHOLD_COSINE", "COSINE")
    for choice in support["choices"]:
        assert choice["held_out"]["false_acceptance"] == 0
        assert choice["held_out"]["false_refusal"] == 0
    # What is found is equally near to every question here.
    assert {at["false_acceptance"] + at["false_refusal"] for at in score["curve"]} == {1}


async def test_calibration_without_cases_of_both_kinds_ends_before_anybody_is_asked(
    suite: Suite,
) -> None:
    with pytest.raises(InvalidInput, match="calibration needs cases of both kinds in both halves"):
        await suite.evaluate(suite.gold(), calibrate=True)
    assert suite.retrieve.requests == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"levels": ()}, "--levels names whose documents the candidate may see"),
        ({"calibrate": True}, "--qualify and --calibrate are runs of their own"),
        ({}, "no candidate is 'backup'; configured: none"),
    ],
)
async def test_a_qualification_that_cannot_be_ends_before_anybody_is_asked(
    suite: Suite, changed: dict[str, Any], said: str
) -> None:
    gates = [{"metric": "answers.correct", "at_least": 1}]
    cases = [{**case, "id": f"{at}{number}"} for number in range(4) for at, case in enumerate(GOLD)]
    gold = suite.gold(*cases, gates=gates)
    plan = {"qualify": "backup", "levels": (AccessLevel.TEAM,), **changed}
    with pytest.raises(InvalidInput, match=said):
        await suite.evaluate(gold, **plan)
    assert [*suite.gateway.bodies, *suite.retrieve.requests] == []
