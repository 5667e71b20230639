import pytest

from bench.start import EMPTY, measure


@pytest.mark.soak
def test_every_process_becomes_ready_and_an_empty_one_is_smaller() -> None:
    found = measure(rounds=1)["processes"]
    stages = {f"services.{stage}" for stage in ("assemble", "generate", "ingest", "retrieve")}
    assert set(found) == stages | {"gateway", "gateway.worker", EMPTY}
    empty = found.pop(EMPTY)
    assert all(figures["idle_mb"] > empty["idle_mb"] for figures in found.values())
