import pytest

from bench.parts import litellm
from bench.pipeline import measure


@pytest.mark.soak
def test_without_the_peer_our_own_figures_stand_beside_the_direct_call(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(litellm, "installed", lambda: False)
    found = measure(blocks=1, each=3, documents=2)
    assert set(found["ways"]) == {"direct", "sluice"}
    assert found["ways"]["sluice"]["added_ms"]["p50"] > 0
    assert {"gateway", "retrieve", "assemble", "generate", "qdrant"} < set(
        found["ways"]["sluice"]["cpu_ms"]
    )
    assert [row["met"] for row in found["rows"]] == [None, None, None]
    assert "make setup-bench" in capfd.readouterr().err
