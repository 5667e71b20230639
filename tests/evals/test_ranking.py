"""The fixed arithmetic of the measures, and what holds for every ranking."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.errors import InvalidInput
from evals import ranking

JUDGED = {"a": 2, "b": 1, "c": 0}


def measured(order: list[str], judged: dict[str, int], k: int) -> list[float]:
    grades = ranking.grades(order, judged, complete=True)
    return [
        ranking.precision(grades, k),
        ranking.recall(grades, judged.values(), k),
        ranking.reciprocal_rank(grades, k),
        ranking.ndcg(grades, judged.values(), k),
    ]


def test_a_right_document_behind_a_wrong_one() -> None:
    assert measured(["c", "a", "b"], JUDGED, 3) == pytest.approx([2 / 3, 1, 1 / 2, 0.659], abs=5e-4)


def test_two_equally_right_documents_behind_a_wrong_one() -> None:
    judged = {"x": 0, "y": 2, "z": 2}
    expected = [2 / 3, 1, 1 / 2, 0.693]
    assert measured(["x", "y", "z"], judged, 3) == pytest.approx(expected, abs=5e-4)


def test_precision_divides_by_k_however_few_are_returned() -> None:
    assert ranking.precision([2], 3) == pytest.approx(1 / 3)
    assert ranking.precision([2, 0, 0], 3) == pytest.approx(1 / 3)


def test_an_empty_ranking_is_a_scored_miss() -> None:
    assert measured([], JUDGED, 3) == [0, 0, 0, 0]
    assert ranking.hit([], 3) == 0


def test_what_stands_behind_k_does_not_count() -> None:
    grades = [0, 0, 0, 2]
    assert ranking.reciprocal_rank(grades, 3) == 0
    assert ranking.hit(grades, 3) == 0
    assert ranking.reciprocal_rank(grades, 5) == pytest.approx(1 / 4)


def test_more_relevant_than_places_still_allows_a_perfect_ndcg() -> None:
    assert ranking.ndcg([1, 1, 1], [1] * 5, 3) == pytest.approx(1)
    assert ranking.recall([1, 1, 1], [1] * 5, 3) == pytest.approx(3 / 5)


def test_an_identity_that_stands_twice_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="'a' was returned twice"):
        ranking.grades(["a", "b", "a"], JUDGED, complete=False)


def test_an_unjudged_result_is_an_error_only_where_judgments_are_complete() -> None:
    with pytest.raises(InvalidInput, match="'d' was returned and is not judged"):
        ranking.grades(["a", "d"], JUDGED, complete=True)
    assert ranking.grades(["a", "d"], JUDGED, complete=False) == [2, 0]


@pytest.mark.parametrize("measure", [ranking.recall, ranking.ndcg])
def test_without_anything_relevant_there_is_no_recall_and_no_ndcg(
    measure: Callable[[list[int], list[int], int], float],
) -> None:
    with pytest.raises(ValueError, match="without anything relevant"):
        measure([0, 0], [0, 0], 3)


def test_a_document_counts_at_its_best_rank() -> None:
    assert ranking.first_of_each(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]


GRADES = st.lists(st.integers(0, 2), min_size=1, max_size=12).filter(any)
KS = st.sampled_from([1, 3, 5, 10])


@given(GRADES, KS)
def test_every_measure_lies_between_nothing_and_all(grades: list[int], k: int) -> None:
    for value in (
        ranking.precision(grades, k),
        ranking.recall(grades, grades, k),
        ranking.hit(grades, k),
        ranking.reciprocal_rank(grades, k),
        ranking.ndcg(grades, grades, k),
    ):
        assert 0 <= value <= 1 + 1e-12


@given(GRADES, KS)
def test_the_best_order_has_the_best_ndcg_and_no_other_has_more(grades: list[int], k: int) -> None:
    best = sorted(grades, reverse=True)
    assert ranking.ndcg(best, grades, k) == pytest.approx(1)
    assert ranking.ndcg(grades, grades, k) <= 1 + 1e-12


@given(GRADES, KS, st.data())
def test_moving_a_relevant_document_up_never_lowers_a_measure(
    grades: list[int], k: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(grades) - 1))
    to = data.draw(st.integers(0, at))
    moved = [*grades[:to], grades[at], *grades[to:at], *grades[at + 1 :]]
    others = grades[to:at]
    if all(grades[at] >= other for other in others):
        assert ranking.ndcg(moved, grades, k) >= ranking.ndcg(grades, grades, k) - 1e-12
        assert ranking.recall(moved, grades, k) >= ranking.recall(grades, grades, k)
        assert ranking.reciprocal_rank(moved, k) >= ranking.reciprocal_rank(grades, k)


@given(GRADES)
def test_recall_never_falls_with_k_and_precision_times_k_counts_the_same(grades: list[int]) -> None:
    found = [ranking.recall(grades, grades, k) for k in (1, 3, 5, 10)]
    assert found == sorted(found)
    for k in (1, 3, 5, 10):
        counted = ranking.precision(grades, k) * k
        assert math.isclose(counted, ranking.recall(grades, grades, k) * sum(map(bool, grades)))


@given(st.lists(st.sampled_from("abcdef"), max_size=20))
def test_collapsing_keeps_every_document_once_in_order(order: list[str]) -> None:
    collapsed = ranking.first_of_each(order)
    assert set(collapsed) == set(order)
    assert [order.index(one) for one in collapsed] == sorted(order.index(one) for one in collapsed)
