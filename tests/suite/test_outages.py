"""Each process killed in turn while questions arrive: worded failures only, then recovery."""

import os
import signal

import httpx
import pytest

from tests.suite.conftest import CONTENT, PARTS, Running, wait_for

QUESTION = "When is the production deploy window?"
RECOVERY_SECONDS = 45
WORDED = {
    ("UNAVAILABLE", "RETRIEVAL_UNAVAILABLE"),
    ("UNAVAILABLE", "MODEL_UNAVAILABLE"),
    ("UNAVAILABLE", "CAPACITY"),
    ("UNAVAILABLE", "DEADLINE"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_killed_process_costs_worded_failures_and_comes_back(
    examples: Running, part: str
) -> None:
    before = examples.pids()
    seen: list[tuple[str, str]] = []
    refused: list[int] = []

    def answered() -> bool:
        try:
            reply = examples.ask(QUESTION)
        except httpx.TransportError:
            assert part == "gateway"  # nobody else closes the door
            return False
        if reply.status_code != 200:
            assert reply.headers["content-type"] == "application/problem+json"
            refused.append(reply.status_code)
            return False
        answer = reply.json()
        seen.append((answer["mode"], answer["reason"]))
        return answer["mode"] in CONTENT

    def back() -> bool:
        return examples.pids()[part] != before[part] and examples.ready() and answered()

    assert answered()
    os.kill(before[part], signal.SIGKILL)
    assert wait_for(back, RECOVERY_SECONDS), (seen, refused)
    assert {one for one in seen if one[0] not in CONTENT} <= WORDED
    assert set(refused) <= {503}
    others = {name: pid for name, pid in examples.pids().items() if name != part}
    assert others == {name: pid for name, pid in before.items() if name != part}
