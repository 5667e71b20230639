import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from local import state
from local.state import RunningPart, RunningSuite

SUITE = RunningSuite(
    pid=os.getpid(),
    profile="embedded",
    url="http://127.0.0.1:8080",
    ports={"gateway": 8080},
    parts=[RunningPart("gateway", 8080, 4711, "gateway.log")],
)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    state.write(tmp_path, SUITE)
    assert state.read(tmp_path) == SUITE


def test_the_state_of_a_suite_that_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    state.write(tmp_path, replace(SUITE, pid=gone.pid))
    assert state.read(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"parts": [{"name": 1}]}'])
def test_a_state_that_cannot_be_understood_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / state.STATE).write_text(text)
    assert state.read(tmp_path) is None
