"""The suite over a real engine, whose small model seldom keeps the contract: what is said then."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from itertools import count, product
from typing import Any

import httpx
import pytest

from chassis.identity import AccessLevel
from cli.identity import Identity
from local.llm.bundle import MODEL
from tests.suite.conftest import Running, started, wait_for

EVENTS = "text/event-stream"
OUTPUT_TOKENS = 64
FERRIES = """# Ferries

The first ferry to Saltholm leaves at 05:40 and the last one at 23:10.

## Bicycles

A bicycle costs 4 euros. Each ferry carries at most 30 bicycles.
"""
LIGHTHOUSE = """# Lighthouse

The lighthouse on Saltholm is open from April to October. Its stairs have 212 steps.

## Groups

A group of more than 12 people books a guide two days ahead.
"""
QUESTIONS = [
    "When does the first ferry to Saltholm leave?",
    "How many bicycles does each ferry carry?",
]
# Each is asked once, so that no stored answer stands in for the engine.
FRESH = (f"How many steps do the stairs of lighthouse {number} have?" for number in count(1))
# What may come of a question whose passages were found and whose model was asked.
ASKED = {
    ("GENERATED", "NONE"),
    ("ABSTAINED", "EVIDENCE_INSUFFICIENT"),
    ("EXTRACTIVE", "INVALID_OUTPUT"),
    ("UNAVAILABLE", "INVALID_OUTPUT"),
}
# And while the engine is away.
AWAY = set(product(["EXTRACTIVE", "UNAVAILABLE"], ["MODEL_UNAVAILABLE", "CAPACITY"]))
RECOVERY_SECONDS = 90

Answer = dict[str, Any]


@pytest.fixture(scope="module")
def island(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A suite whose answers the small model writes, with two documents in it."""
    folder = tmp_path_factory.mktemp("island")
    (folder / "ferries.md").write_text(FERRIES)
    (folder / "lighthouse.md").write_text(LIGHTHOUSE)
    told = {
        "SLUICE_ANSWER_OUTPUT_TOKENS": str(OUTPUT_TOKENS),
        "SLUICE_ANSWER_INVALID_OUTPUT": "fail",  # a second reply is as likely to be broken
    }
    data = tmp_path_factory.mktemp("local-llm")
    with started(data, "--profile", "local-llm", **told) as running:
        done = running.sluice("ingest", str(folder), "--data", str(data), "--json")
        assert done.returncode == 0, done.stderr + done.stdout
        yield running


def how(answer: Answer) -> tuple[str, str]:
    return answer["mode"], answer["reason"]


def request(question: str, accept: str) -> dict[str, Any]:
    person = Identity("tester", "demo", AccessLevel.TEAM).for_gateway()
    headers = {"Authorization": f"Bearer {person}", "Accept": accept}
    return {"url": "/v1/answers", "json": {"question": question}, "headers": headers}


async def streamed(running: Running, question: str) -> AsyncIterator[tuple[str, Answer]]:
    """The events of one answer: name and content."""
    async with (
        httpx.AsyncClient(base_url=running.url, timeout=60) as client,
        client.stream("POST", **request(question, EVENTS)) as reply,
    ):
        name = ""
        async for line in reply.aiter_lines():
            kind, _, content = line.partition(": ")
            if kind == "event":
                name = content
            if kind == "data":
                yield name, json.loads(content)


def engine(running: Running, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{running.ports['llm']}{path}", timeout=30)


def writes(running: Running) -> bool:
    """Whether a slot of the engine is taken."""
    return any(slot["is_processing"] for slot in engine(running, "/slots").json())


def written(running: Running) -> float:
    """Tokens of the replies that the engine wrote to their end."""
    lines = engine(running, "/metrics").text.splitlines()
    (line,) = [one for one in lines if one.startswith("llamacpp:tokens_predicted_total ")]
    return float(line.split()[1])


@pytest.fixture(scope="module")
def answers(island: Running) -> list[Answer]:
    """What came of each question, with the tokens that the engine wrote meanwhile."""
    found = []
    for question in QUESTIONS:
        before = written(island)
        reply = island.ask(question)
        assert reply.status_code == 200, reply.text
        found.append({**reply.json(), "written": written(island) - before})
    return found


def test_a_question_ends_in_an_outcome_of_the_table_with_what_the_engine_used(
    answers: list[Answer],
) -> None:
    assert {how(answer) for answer in answers} <= ASKED
    for usage, tokens in ((answer["usage"], answer["written"]) for answer in answers):
        assert (usage["model"], usage["attempts"]) == (MODEL, 1)
        assert usage["input_tokens"] > 400
        assert 0 < usage["output_tokens"] == tokens


def test_what_the_model_wrote_was_held_to_the_schema(answers: list[Answer]) -> None:
    written = [answer["provenance"] for answer in answers if answer["mode"] == "GENERATED"]
    assert all(provenance["schema_constrained"] for provenance in written)
    assert all(provenance["candidate"] for provenance in written)


def test_nothing_is_accepted_that_cites_no_admitted_source(answers: list[Answer]) -> None:
    for answer in answers:
        labels = {source["label"] for source in answer["sources"]}
        cited = {citation["label"] for citation in answer["citations"]}
        assert cited <= labels
        assert cited or answer["acceptance"] != "ACCEPTED"


async def test_a_stream_ends_with_its_one_answer_which_is_what_was_shown(island: Running) -> None:
    events = [event async for event in streamed(island, QUESTIONS[0])]
    names = [name for name, _ in events]
    (answer,) = [data for name, data in events if name == "answer"]
    assert names[-1] == "answer"
    assert set(names) <= {"stage", "delta", "retract", "answer"}
    assert how(answer) in ASKED
    shown = "".join(data["text"] for name, data in events if name == "delta")
    assert "retract" in names or shown in {"", answer["text"]}
    assert answer["usage"]["output_tokens"] > 0


@pytest.mark.parametrize("accept", ["application/json", EVENTS])
async def test_a_client_that_leaves_ends_the_engines_work(island: Running, accept: str) -> None:
    before, question = await asyncio.to_thread(written, island), next(FRESH)
    async with httpx.AsyncClient(base_url=island.url, timeout=60) as client:
        asking = asyncio.create_task(client.post(**request(question, accept)))
        assert await asyncio.to_thread(wait_for, lambda: writes(island), 30)
        asking.cancel()
        assert await asyncio.to_thread(wait_for, lambda: not writes(island), 30)
    left = await asyncio.to_thread(written, island) - before
    whole = await asyncio.to_thread(island.ask, question)
    assert left < whole.json()["usage"]["output_tokens"]


async def test_an_engine_killed_while_it_writes_is_told_and_comes_back(island: Running) -> None:
    before = island.pids()
    asking = asyncio.create_task(asyncio.to_thread(island.ask, next(FRESH)))
    assert await asyncio.to_thread(wait_for, lambda: writes(island), 30)
    os.kill(before["llm"], signal.SIGKILL)
    seen = [how((await asking).json())]

    def back() -> bool:
        seen.append(how(island.ask(next(FRESH)).json()))
        return seen[-1] in ASKED

    assert await asyncio.to_thread(wait_for, back, RECOVERY_SECONDS), seen
    assert set(seen) <= AWAY | ASKED
    others = {name: pid for name, pid in island.pids().items() if name != "llm"}
    assert others == {name: pid for name, pid in before.items() if name != "llm"}
