"""A question is queued and fetched on the command line, as a person would."""

import json

from tests.suite.conftest import CONTENT, Running, wait_for

QUESTION = "When is the production deploy window?"


def test_a_question_is_queued_and_its_answer_fetched_by_its_owner_alone(examples: Running) -> None:
    where = ("--data", str(examples.data), "--json")
    queued = examples.sluice("ask", QUESTION, "--later", *where)
    assert queued.returncode == 0, queued.stderr
    job_id = json.loads(queued.stdout)["job_id"]
    found: list[dict[str, object]] = []

    def ended() -> bool:
        looked = examples.sluice("job", job_id, *where)
        found.append(json.loads(looked.stdout))
        return looked.returncode == 0

    assert wait_for(ended, 60), found
    answer = found[-1]["answer"]
    assert isinstance(answer, dict)
    assert answer["mode"] in CONTENT
    assert answer["text"] == examples.ask(QUESTION).json()["text"]
    stranger = examples.sluice("job", job_id, "--subject", "somebody", *where)
    assert stranger.returncode != 0
    assert "there is no such job" in stranger.stdout + stranger.stderr
