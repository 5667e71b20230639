import pytest

from bench.stream import measure


@pytest.mark.soak
def test_streams_come_whole_by_both_ways_and_end_with_their_reader() -> None:
    found = measure(rounds=2, leavers=2, streams=2, each=20)
    assert set(found["first_ms"]) == {"direct", "stage", "gateway"}
    for way in ("stage", "gateway"):
        assert (found["many"][way]["deltas"], found["many"][way]["lost"]) == (40, 0)
        assert found["left"][way]["settled_ms"]["max"] > 0
