"""A run of a second: does it hold, and is all told that the baseline tells? Times mean nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASELINE = ROOT / "bench" / "baselines" / "capacity.json"


@pytest.mark.soak
def test_a_short_run_finds_no_overshoot_and_tells_what_the_baseline_tells() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.capacity", "--json", "--seconds", "1", "--processes", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    run = json.loads(done.stdout)["processes"]["2"]
    assert {over for part in run["overshoot"].values() for over in part.values()} == {0}
    assert run["most_in_flight"]["places"] == [10, 10]
    assert all(0 < share <= 1 for share in run["utilisation"].values())
    assert all(ratio > 0 for step in run["cost"].values() for ratio in step.values())
    assert run["throughput"] > 0
    recorded = json.loads(BASELINE.read_text())["processes"]["4"]
    assert run.keys() == recorded.keys()
    assert run["overshoot"].keys() == recorded["overshoot"].keys()
