import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.retrieve.fuse import RANK_CONSTANT, TELLING, Fusion, Ranked, Space, in_order

DENSE = [Ranked("a", 1.0), Ranked("b", 0.75), Ranked("c", 0.5)]
SPARSE = [Ranked("d", 12.0), Ranked("b", 9.0), Ranked("a", 6.0)]
ASKED = 8.0  # terms, of which the best match holds enough


def test_scores_are_stretched_and_weighed() -> None:
    found = Fusion(Space.MIN_MAX, 0.5).fused(DENSE, SPARSE, ASKED)
    assert [one.id for one in found] == ["a", "b", "d", "c"]
    assert [one.score for one in found] == pytest.approx([0.5, 0.5, 0.5, 0.0])


def test_ranks_alone_count_in_rrf() -> None:
    found = Fusion(Space.RRF, 0.5).fused(DENSE, SPARSE, ASKED)
    first, second, third = (1 / (RANK_CONSTANT + place) for place in (1, 2, 3))
    scores = {one.id: one.score for one in found}
    assert scores == pytest.approx(
        {"a": (first + third) / 2, "b": second, "c": third / 2, "d": first / 2}
    )


def test_one_passage_alone_is_the_best_there_is() -> None:
    for space in (Space.RRF, Space.MIN_MAX):
        (found,) = Fusion(space, 0.5).fused([Ranked("a", 0.7)], [], ASKED)
        assert found.id == "a"
        assert found.score > 0
    assert Fusion(Space.MIN_MAX, 0.5).fused([], [], 0) == []


def test_the_weight_decides_between_both() -> None:
    assert Fusion(Space.MIN_MAX, 0.9).fused(DENSE, SPARSE, ASKED)[0].id == "a"
    assert Fusion(Space.MIN_MAX, 0.1).fused(DENSE, SPARSE, ASKED)[0].id == "d"


def test_words_count_less_where_the_best_match_holds_little_of_the_question() -> None:
    fusion = Fusion(Space.MIN_MAX, 0.4)
    orders = {
        asked: "".join(one.id for one in fusion.fused(DENSE, SPARSE, asked))
        for asked in (8.0, 16.0, 80.0)
    }
    assert orders == {8.0: "dbac", 16.0: "abdc", 80.0: "abdc"}


SCORES = st.integers(-1_000_000, 1_000_000).map(float)
POSITIVE = st.floats(0.01, 100)
WEIGHTS = st.floats(0, 1)


def rankings(scores: st.SearchStrategy[float]) -> st.SearchStrategy[list[Ranked]]:
    return st.dictionaries(st.sampled_from("abcdefgh"), scores).map(
        lambda found: in_order([Ranked(name, score) for name, score in found.items()])
    )


@given(rankings(SCORES), rankings(POSITIVE), WEIGHTS, st.sampled_from([Space.RRF, Space.MIN_MAX]))
def test_any_two_rankings_become_one_of_all_their_passages(
    dense: list[Ranked], sparse: list[Ranked], weight: float, space: Space
) -> None:
    found = Fusion(space, weight).fused(dense, sparse, ASKED)
    names = [one.id for one in found]
    assert sorted(names) == sorted({one.id for one in [*dense, *sparse]})
    assert found == in_order(found)
    assert all(0 <= one.score <= 1 + 1e-9 for one in found)
    # In whatever order an index returns equal scores, the result is one.
    assert Fusion(space, weight).fused(dense[::-1], sparse[::-1], ASKED) == found


@given(rankings(SCORES), rankings(POSITIVE), WEIGHTS, POSITIVE, POSITIVE)
def test_what_holds_less_of_the_question_never_counts_more(
    dense: list[Ranked], sparse: list[Ranked], weight: float, asked: float, more: float
) -> None:
    """A passage found by words alone scores what words count; one by embeddings alone, the rest."""
    fusion = Fusion(Space.MIN_MAX, weight)
    known = {one.id for one in dense}
    before, after = (
        {one.id: one.score for one in fusion.fused(dense, sparse, terms)}
        for terms in (asked, asked + more)
    )
    by_words = {one.id for one in sparse} - known
    by_embeddings = known - {one.id for one in sparse}
    assert all(after[name] <= before[name] + 1e-9 for name in by_words)
    assert all(after[name] >= before[name] - 1e-9 for name in by_embeddings)
    assert all(before[name] <= 1 - weight + 1e-9 for name in by_words)


@given(rankings(SCORES), rankings(POSITIVE), WEIGHTS)
def test_words_that_tell_nothing_leave_the_order_of_the_embeddings(
    dense: list[Ranked], sparse: list[Ranked], weight: float
) -> None:
    names = [one.id for one in Fusion(Space.MIN_MAX, weight).fused(dense, [], ASKED)]
    assert names == [one.id for one in dense]
    least = Fusion(Space.MIN_MAX, weight).fused(dense, sparse, asked=1e300)
    scores = {one.id: one.score for one in least}
    assert [scores[name] for name in names] == sorted(
        (scores[name] for name in names), reverse=True
    )


@given(rankings(SCORES), rankings(POSITIVE), WEIGHTS)
def test_a_match_that_holds_the_question_counts_as_it_is_set(
    dense: list[Ranked], sparse: list[Ranked], weight: float
) -> None:
    asked = max((one.score for one in sparse), default=0.0) / TELLING
    fusion = Fusion(Space.MIN_MAX, weight)
    best = {one.id for one in sparse[:1]} - {one.id for one in dense}
    found = {one.id: one.score for one in fusion.fused(dense, sparse, asked)}
    assert all(found[name] == pytest.approx(1 - weight) for name in best)
