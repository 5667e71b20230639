from bench.hops import MANY, measure


def test_each_call_is_answered_by_its_stage_and_by_an_echo() -> None:
    found = measure(rounds=3, passages=5)
    assert set(found["hops"]) == {"assemble, 1 passage", MANY, "generate, extractive"}
    for figures in found["hops"].values():
        assert all(value > 0 for value in figures.values())
    assert [row["than"] > 0 for row in found["rows"]] == [True, True, True]
