from bench.assemble import measure


def test_both_ways_of_counting_come_to_the_same_message() -> None:
    found = measure(candidates=100, context=4_096)
    assert found["same_message"]
    assert 0 < found["sources"] <= 100
    assert [row["ratio"] > 0 for row in found["rows"]] == [True, True]
