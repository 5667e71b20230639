"""The gold questions through every stage, held against the gates that are shipped with them."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.generate import qualification
from services.generate.qualification import SCHEMA_VERSION, validation_version
from tests.scripted_provider import replies
from tests.scripted_provider.server import ScriptedProvider
from tests.suite.conftest import EXAMPLES, Running

Results = Mapping[str, Any]
Figure = Callable[[str, object], None]
# Both are of the held-out half.
COVERED = {
    "id": "capstan-replicas",
    "category": "covered",
    "question": "To how many replicas may I scale the Capstan workers without asking anybody?",
    "relevant": [{"document": "runbooks/queue-backlog.md", "grade": 2}],
}
OUTSIDE = {
    "id": "parental-leave",
    "category": "outside",
    "question": "How many weeks of parental leave do Northquay employees get?",
    "asker": {"level": "public"},
}
CANDIDATES = """\
pools:
  backup: {{requests_per_minute: 600, tokens_per_minute: 600000, in_flight: 2,
    max_reservation: 20000}}
candidates:
- {{id: backup, pool: backup, base_url: "{url}", model: small, qualification: backup.json,
    credentials: none}}
"""


@pytest.fixture(scope="module")
def evaluated(examples: Running, tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("evals")
    done = examples.sluice("eval", "--data", str(examples.data), "--out", str(out), "--json")
    assert done.returncode in {0, 1}, done.stderr
    results: Results = json.loads(done.stdout)
    return results


def test_every_shipped_gate_holds(evaluated: Results, record_property: Figure) -> None:
    figures = evaluated["groups"][""]
    record_property("gold hit rate at 5", figures["retrieval.hit@5"]["value"])
    record_property("gold questions answered", figures["answers.answered"]["value"])
    failed = [gate for gate in evaluated["gates"] if not gate["passed"]]
    assert failed == []
    assert len(evaluated["gates"]) == 7


def test_without_a_model_answers_are_quotations_labelled_so(evaluated: Results) -> None:
    answers = [answer for case in evaluated["cases"] for answer in case["answers"]]
    labels = {
        (answer["mode"], answer["reason"], answer["acceptance"])
        for answer in answers
        if answer["acceptance"]
    }
    assert labels == {("EXTRACTIVE", "NONE", "ACCEPTED")}
    assert {answer["mode"] for answer in answers} == {"EXTRACTIVE", "ABSTAINED"}


def test_the_results_name_everything_that_they_depend_on(evaluated: Results) -> None:
    settings = evaluated["settings"]
    assert settings["documents"] == len(list((EXAMPLES / "corpus").rglob("*.md")))
    assert settings["embedding_profile"] == "multilingual-e5-small"
    empty = {name for name, value in settings.items() if not value}
    assert empty <= {"models", "code_revision"}  # none was asked; the code may stand outside git
    assert any(setting.startswith("top_k=") for setting in settings["retrieval"])


async def test_a_candidate_that_keeps_its_bounds_gets_the_report_that_generate_demands(
    examples: Running, tmp_path: Path
) -> None:
    gates = [{"metric": "answers.false_acceptance", "at_most": 0}]
    gold = tmp_path / "gold.yaml"
    gold.write_text(json.dumps({"questions": [COVERED, OUTSIDE], "gates": gates}))
    refusal = json.dumps({"status": "insufficient", "answer": "", "source_ids": []})
    async with ScriptedProvider() as provider:
        provider.script(*[replies.answer(refusal)] * 2)
        listed = tmp_path / "candidates.yaml"
        listed.write_text(CANDIDATES.format(url=provider.base_url))
        told = {**examples.environment, "SLUICE_ANSWER_CANDIDATES": str(listed)}
        options = ("--qualify", "backup", "--levels", "public,team", "--out", str(tmp_path))
        arguments = ("eval", str(gold), "--data", str(examples.data), "--json", *options)
        done = await asyncio.to_thread(replace(examples, environment=told).sluice, *arguments)
        assert provider.calls == 2
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    report = qualification.read(Path(results["files"][-1]))
    assert (report.passed, report.mode, report.model) == (True, "review", "small")
    assert report.schema_version == SCHEMA_VERSION
    assert report.validation_version == validation_version(0.5)
    assert report.levels == {"public", "team"}
    assert report.instructions_versions == set(results["settings"]["instructions_versions"])
    assert results["qualification"]["shared"] == []
