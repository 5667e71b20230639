import pytest

from bench.overload import overloaded, streamed


@pytest.mark.soak
def test_every_stream_comes_whole_to_quick_and_to_slow_readers() -> None:
    found = streamed(streams=6, seconds=1)
    assert (found["whole"], found["broken"]) == (6, 0)
    assert found["gateway_mb"]["most"] >= found["gateway_mb"]["begin"] > 0


@pytest.mark.soak
def test_too_many_calls_are_answered_or_refused_and_nothing_else() -> None:
    found = overloaded(times=5, seconds=20)
    assert set(found["ends"]) == {"GENERATED", "503 NO_ROOM"}
    assert found["answered_ms"]["p50"] > found["refused_ms"]["p50"] > 0
