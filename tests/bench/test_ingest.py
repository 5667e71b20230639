import pytest

from bench.ingest import measure


@pytest.mark.soak
def test_a_folder_goes_in_once_and_an_edit_embeds_one_text() -> None:
    found = measure(files=6, rate=0)
    assert (found["chunks"], found["unchanged_embedded"], found["unchanged_sent"]) == (24, 0, 0)
    assert found["edit_embedded"] == 1
    assert set(found["largest_memory_mb"]) == {"provider", "qdrant", "ingest"}
