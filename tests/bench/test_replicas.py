"""Two replicas for some seconds: does it hold, and is all told that the baseline tells?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASELINE = ROOT / "bench" / "baselines" / "replicas.json"


@pytest.mark.soak
def test_a_short_run_never_exceeds_the_allowance() -> None:
    words = ["--json", "--seconds", "3", "--processes", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.replicas", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        check=True,
    )
    loads = json.loads(done.stdout)["loads"]
    assert [run["over"] for run in loads.values()] == [0, 0]
    assert all(run["arrivals"] > 0 for run in loads.values())
    assert loads["killed"]["killed"] == 1
    assert [back["replicas"] for back in loads["outage"]["shared_again"]] == [2, 2]
    recorded = json.loads(BASELINE.read_text())["loads"]
    assert {name: run.keys() for name, run in loads.items()} == {
        name: run.keys() for name, run in recorded.items()
    }
