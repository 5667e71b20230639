"""The command as a process: what it prints, and its exit codes."""

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from chassis.errors import Exhausted, SluiceError, Unauthenticated
from cli import exits
from cli.gateway_service import ask
from cli.output import safe
from gateway.identity import development_issuer
from local import ports
from tests.cli.stage import Stage

URI = "https://docs.example/deploys\x1b[2J"
ANSWER = {
    "answer_id": "a1",
    "mode": "EXTRACTIVE",
    "reason": "NONE",
    "acceptance": "ACCEPTED",
    "age_seconds": None,
    "job_id": None,
    "message": "sentences of the sources word for word; no model was asked",
    "text": "Deploys run on Monday. [S1]",
    "citations": [{"label": "S1", "start": 0, "end": 27, "support": 1.0}],
    "sources": [
        {
            "label": label,
            "document_id": f"{label}.md",
            "title": "Deploys",
            "version": "3",
            "heading_path": ["Deploys", "Window [draft]"],
            "included_text": "Deploys run on Monday.",
            "score": 0.875,
            "uri": URI,
            "access_level": "team",
            "suspected_injection": False,
            "passages": ["p1"],
        }
        for label in ("S1", "S2")
    ],
    "usage": {"input_tokens": None, "output_tokens": None, "attempts": 0, "model": ""},
    "timings": {"retrieve": 21.4, "assemble": 1.6, "generate": None, "total": 23.9},
    "instructions_version": "v1",
    "score_space": "COSINE",
    "epoch": 4,
}


@dataclass(slots=True)
class Gateway:
    """Answers with `status` and `body`; keeps what the last request carried."""

    url: str
    status: int = 200
    body: object = None
    question: str = ""
    token: str = ""

    async def answer(self, request: Request) -> Response:
        self.question = (await request.json())["question"]
        self.token = request.headers["authorization"].removeprefix("Bearer ")
        return JSONResponse(self.body, status_code=self.status)


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    listener = socket.create_server(("127.0.0.1", 0))
    gateway = Gateway(f"http://127.0.0.1:{listener.getsockname()[1]}", body=ANSWER)
    app = Starlette(routes=[Route("/v1/answers", gateway.answer, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve([listener]))
    yield gateway
    server.should_exit = True
    await serving


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - JSON is anything
        return json.loads(self.out)


async def begun(folder: Path, *arguments: str, **told: str) -> Process:
    """The command, started where no suite ever was."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli.main", *arguments),
        env={**os.environ, **told},
        cwd=folder,
        stdout=PIPE,
        stderr=PIPE,
    )


async def sluice(folder: Path, *arguments: str, **told: str) -> Result:
    """What the command says, and its exit code."""
    process = await begun(folder, *arguments, **told)
    async with asyncio.timeout(30):
        out, err = await process.communicate()
    return Result(await process.wait(), out.decode(), err.decode())


async def test_an_answer_is_shown_with_its_cited_sources_outcome_and_times(
    tmp_path: Path, gateway: Gateway
) -> None:
    result = await sluice(tmp_path, "ask", "When?", SLUICE_GATEWAY_URL=gateway.url)
    assert (result.code, result.err) == (exits.OK, "")
    assert result.out.splitlines() == [
        "Deploys run on Monday. [S1]",
        "",
        "EXTRACTIVE NONE: sentences of the sources word for word; no model was asked",
        f"[S1] S1.md: Deploys / Window [draft], version 3 (score 0.875) {safe(URI)}",
        "time: retrieve 21 ms, assemble 2 ms, total 24 ms",
    ]
    assert "\x1b" not in result.out


async def test_the_asker_is_who_the_options_say(tmp_path: Path, gateway: Gateway) -> None:
    options = ("--level", "restricted", "--groups", "sre, dba", "--tenant", "acme", "--json")
    result = await sluice(tmp_path, "ask", "When?", *options, SLUICE_GATEWAY_URL=gateway.url)
    caller = development_issuer().verify(gateway.token)
    assert result.document == ANSWER
    assert gateway.question == "When?"
    assert (caller.tenant, caller.level.label) == ("acme", "restricted")
    assert caller.groups == {"sre", "dba"}


async def test_a_token_of_the_persons_own_is_sent_as_it_is(
    tmp_path: Path, gateway: Gateway
) -> None:
    told = {"SLUICE_GATEWAY_URL": gateway.url, "SLUICE_TOKEN": "mine"}
    await sluice(tmp_path, "ask", "When?", **told)
    assert gateway.token == "mine"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, exits.USAGE),
        (401, exits.NOT_ALLOWED),
        (403, exits.NOT_ALLOWED),
        (429, exits.INCOMPLETE),
        (500, exits.INCOMPLETE),
        (504, exits.UNREACHABLE),
    ],
)
async def test_every_refusal_of_the_gateway_has_its_exit_code(
    gateway: Gateway, status: int, code: int
) -> None:
    gateway.status, gateway.body = status, {"detail": "the reason why"}
    with pytest.raises(SluiceError, match="the reason why") as refusal:
        await ask(gateway.url, "token", "When?")
    assert exits.code_of(refusal.value) == code


async def test_a_refusal_is_a_line_and_with_json_a_document(
    tmp_path: Path, gateway: Gateway
) -> None:
    gateway.status, gateway.body = 503, {"detail": "no\x07room", "reason": "BUSY", "retry_after": 2}
    result = await sluice(tmp_path, "ask", "When?", "--json", SLUICE_GATEWAY_URL=gateway.url)
    assert result.code == exits.UNREACHABLE
    assert result.err == "no\N{REPLACEMENT CHARACTER}room\nTry again in 2 s.\n"
    error = {"message": "no\x07room", "reason": "BUSY", "retry_after": 2}
    assert result.document == {"error": error}


@pytest.mark.parametrize("command", [("ask", "When?"), ("documents",), ("status",), ("capacity",)])
async def test_where_nothing_answers_the_way_out_is_named(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    port = ports.free(1)[0]
    told = {
        "SLUICE_GATEWAY_URL": f"http://127.0.0.1:{port}",
        "SLUICE_INGEST_TARGET": f"127.0.0.1:{port}",
    }
    told |= {ports.setting(name): str(port) for name in ports.DEFAULTS}
    result = await sluice(tmp_path, *command, **told)
    assert (result.code, result.out) == (exits.UNREACHABLE, "")
    assert result.err == f"nothing answers at 127.0.0.1:{port}: start the suite with `sluice up`\n"


async def test_ingest_prints_one_json_document_and_its_code_tells_of_refusals(
    tmp_path: Path, stage: Stage
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("text")
    (docs / "b.md").write_text("access: secret")
    (docs / "README.md").write_text("skipped")
    result = await sluice(tmp_path, "ingest", "docs", "--json", SLUICE_INGEST_TARGET=stage.address)
    done = result.document
    assert result.code == exits.INCOMPLETE
    assert (done["source"], done["added"], done["skipped"]) == ("docs", ["a.md"], {"README.md": 1})
    assert done["refused"] == [
        {"document_id": "b.md", "line": "1", "reason": "access: no such level"}
    ]


async def test_people_see_refusals_in_a_table_and_a_summary(tmp_path: Path, stage: Stage) -> None:
    (tmp_path / "a.md").write_text("text")
    (tmp_path / "b.md").write_text("access: secret")
    arguments = ("ingest", ".", "--source", "handbook")
    result = await sluice(tmp_path, *arguments, SLUICE_INGEST_TARGET=stage.address)
    assert "handbook: 1 added, 0 updated, 0 unchanged, 0 retired, 1 refused" in result.out
    assert ["b.md", "1", "access: no such level"] in [
        [cell.strip() for cell in line.strip("│").split("│")] for line in result.out.splitlines()
    ]


async def test_a_file_is_previewed_in_full_and_a_folder_in_sums(
    tmp_path: Path, stage: Stage
) -> None:
    (tmp_path / "a.md").write_text("the text")
    (tmp_path / "b.md").write_text("access: secret")
    told = {"SLUICE_INGEST_TARGET": stage.address}
    one = await sluice(tmp_path, "preview", "a.md", **told)
    every = await sluice(tmp_path, "preview", ".", **told)
    assert "--- chunk 0, 7 tokens, Guide / Start\nthe text\n" in one.out
    assert "1 documents, 1 chunks, 7 tokens, 1 refused" in every.out
    assert "1 x access: no such level" in every.out
    assert (one.code, every.code) == (exits.OK, exits.INCOMPLETE)
    assert stage.documents == {}


async def test_documents_of_every_page_are_listed(tmp_path: Path, stage: Stage) -> None:
    for number in range(5):
        (tmp_path / f"{number}.md").write_text("text")
    told = {"SLUICE_INGEST_TARGET": stage.address}
    await sluice(tmp_path, "ingest", ".", **told)
    result = await sluice(tmp_path, "documents", "--json", **told)
    listed = result.document["documents"]
    assert [one["document_id"] for one in listed] == [f"{number}.md" for number in range(5)]
    assert {one["access_level"] for one in listed} == {"team"}


async def test_a_run_that_ends_midway_says_so_without_blaming_the_identity(
    tmp_path: Path, stage: Stage
) -> None:
    (tmp_path / "a.md").write_text("text")
    expired = Unauthenticated("the token has expired", reason="TOKEN_EXPIRED")
    stage.failures = [expired] * 4
    told = {"SLUICE_INGEST_TARGET": stage.address}
    result = await sluice(tmp_path, "ingest", "a.md", **told)
    assert (result.code, result.out) == (exits.NOT_ALLOWED, "")
    assert result.err.splitlines() == [
        "ingest: the token has expired",
        "this ended the run at a.md",
        "0 of 1 documents are in place; the same command goes on from there",
    ]


async def test_ctrl_c_says_how_far_the_run_came(tmp_path: Path, stage: Stage) -> None:
    (tmp_path / "a.md").write_text("text")
    stage.failures = [Exhausted("no room", retry_after=30)]
    process = await begun(tmp_path, "ingest", "a.md", SLUICE_INGEST_TARGET=stage.address)
    async with asyncio.timeout(30):
        await stage.called.wait()
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
    assert process.returncode == exits.INTERRUPTED
    assert err.decode().splitlines() == [
        "stopped",
        "0 of 1 documents are in place; the same command goes on from there",
    ]


# A signal that another thread takes interrupts no wait of the loop's own thread, just as one that
# comes a moment before that wait.
TAKEN_ELSEWHERE = """
import asyncio, signal, sys, threading
import typer
from cli.output import Output, finish

def take():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

async def waiting():
    threading.Timer(0.5, take).start()  # the loop is waiting by then
    await asyncio.Event().wait()

try:
    finish(Output(as_json=False), waiting)
except typer.Exit as end:
    sys.exit(end.exit_code)
"""


async def test_ctrl_c_is_heard_whenever_it_comes() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TAKEN_ELSEWHERE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(30):
            _, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, err) == (exits.INTERRUPTED, b"stopped\n")


async def test_a_token_is_printed_alone(tmp_path: Path) -> None:
    result = await sluice(tmp_path, "token", "--level", "public", "--roles", "admin")
    caller = development_issuer().verify(result.out.strip())
    assert caller.level.label == "public"
    assert caller.roles == {"admin"}


async def test_wrong_usage_is_code_2_and_help_names_every_code(tmp_path: Path) -> None:
    wrong = await sluice(tmp_path, "token", "--level", "secret")
    missing = await sluice(tmp_path, "ingest", "nowhere")
    help_text = await sluice(tmp_path, "--help")
    assert (wrong.code, missing.code, help_text.code) == (exits.USAGE, exits.USAGE, exits.OK)
    assert "'secret' is not an access level" in " ".join(wrong.err.split())
    assert missing.err == "there is no file or folder nowhere\n"
    said = " ".join(help_text.out.split())
    assert all(f"{code} {meaning}" in said for code, meaning in exits.MEANINGS.items())


async def test_an_unknown_profile_stops_the_start(tmp_path: Path) -> None:
    result = await sluice(tmp_path, "up", "--profile", "cloud")
    assert (result.code, result.out) == (exits.USAGE, "")
    assert result.err.startswith("no profile 'cloud'; there are: ")
    assert "embedded" in result.err
