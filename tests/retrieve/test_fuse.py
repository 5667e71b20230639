import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.retrieve.fuse import RANK_CONSTANT, Fusion, Ranked, Space, in_order

DENSE = [Ranked("a", 1.0), Ranked("b", 0.75), Ranked("c", 0.5)]
SPARSE = [Ranked("d", 12.0), Ranked("b", 9.0), Ranked("a", 6.0)]


def test_scores_are_stretched_and_weighed() -> None:
    found = Fusion(Space.MIN_MAX, 0.5).fused(DENSE, SPARSE)
    assert [one.id for one in found] == ["a", "b", "d", "c"]
    assert [one.score for one in found] == pytest.approx([0.5, 0.5, 0.5, 0.0])


def test_ranks_alone_count_in_rrf() -> None:
    found = Fusion(Space.RRF, 0.5).fused(DENSE, SPARSE)
    first, second, third = (1 / (RANK_CONSTANT + place) for place in (1, 2, 3))
    scores = {one.id: one.score for one in found}
    assert scores == pytest.approx(
        {"a": (first + third) / 2, "b": second, "c": third / 2, "d": first / 2}
    )


def test_one_passage_alone_is_the_best_there_is() -> None:
    for space in (Space.RRF, Space.MIN_MAX):
        (found,) = Fusion(space, 0.5).fused([Ranked("a", 0.7)], [])
        assert found.id == "a"
        assert found.score > 0
    assert Fusion(Space.MIN_MAX, 0.5).fused([], []) == []


def test_the_weight_decides_between_both() -> None:
    assert Fusion(Space.MIN_MAX, 0.9).fused(DENSE, SPARSE)[0].id == "a"
    assert Fusion(Space.MIN_MAX, 0.1).fused(DENSE, SPARSE)[0].id == "d"


SCORES = st.floats(-1e6, 1e6)
RANKINGS = st.dictionaries(st.sampled_from("abcdefgh"), SCORES).map(
    lambda scores: in_order([Ranked(name, score) for name, score in scores.items()])
)


@given(RANKINGS, RANKINGS, st.floats(0, 1), st.sampled_from([Space.RRF, Space.MIN_MAX]))
def test_any_two_rankings_become_one_of_all_their_passages(
    dense: list[Ranked], sparse: list[Ranked], weight: float, space: Space
) -> None:
    found = Fusion(space, weight).fused(dense, sparse)
    names = [one.id for one in found]
    assert sorted(names) == sorted({one.id for one in [*dense, *sparse]})
    assert found == in_order(found)
    assert all(0 <= one.score <= 1 + 1e-9 for one in found)
    # In whatever order an index returns equal scores, the result is one.
    assert Fusion(space, weight).fused(dense[::-1], sparse[::-1]) == found
