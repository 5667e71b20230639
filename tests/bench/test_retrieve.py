"""A run of a few rounds: every way of searching answers. Times mean nothing here."""

import json
from pathlib import Path

import pytest

from bench.retrieve import MODES, measure

BASELINE = Path(__file__).parents[2] / "bench" / "baselines" / "retrieve.json"


@pytest.mark.soak
def test_a_short_run_tells_what_the_baseline_tells() -> None:
    found = measure(passages=60, rounds=3)
    recorded = json.loads(BASELINE.read_text())
    assert found.keys() == recorded.keys()
    assert found["modes"].keys() == recorded["modes"].keys() == MODES.keys()
    for mode, figures in found["modes"].items():
        assert figures.keys() == recorded["modes"][mode].keys()
        assert all(value > 0 for value in figures.values())
