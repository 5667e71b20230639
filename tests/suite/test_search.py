"""Passages on the command line, as far as the person may read."""

import json
from typing import Any

from tests.suite.conftest import Running

QUESTION = "When is the production deploy window?"


def found(running: Running, *arguments: str) -> dict[str, Any]:
    done = running.sluice("search", *arguments, "--data", str(running.data), "--json")
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_passages_are_found_best_first_and_no_more_than_asked_for(examples: Running) -> None:
    passages = found(examples, QUESTION)["passages"]
    assert "deploy" in passages[0]["text"].lower()
    scores = [passage["score"] for passage in passages]
    assert scores == sorted(scores, reverse=True)
    assert found(examples, QUESTION, "--limit", "1")["passages"] == passages[:1]
    shown = examples.sluice("search", QUESTION, "--data", str(examples.data)).stdout
    assert f"[1] {passages[0]['document_id']}" in shown
    assert passages[0]["text"].splitlines()[0] in shown


def test_what_a_person_may_not_read_is_not_found(examples: Running) -> None:
    hidden, asked = "decisions/0016-second-payment-provider.md", "second payment provider"

    def documents(*arguments: str) -> set[str]:
        return {one["document_id"] for one in found(examples, asked, *arguments)["passages"]}

    assert hidden in documents("--level", "restricted", "--groups", "finance")
    assert hidden not in documents("--level", "team")
