import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.retrieve.spread import Candidate, spread

TWINS = [
    Candidate(1.0, [1.0, 0.0]),
    Candidate(0.9, [1.0, 0.01]),
    Candidate(0.5, [0.0, 1.0]),
]


def test_without_diversity_the_score_alone_ranks() -> None:
    assert spread(TWINS, 0.0, 3) == [0, 1, 2]


def test_what_was_said_already_comes_later() -> None:
    assert spread(TWINS, 0.5, 2) == [0, 2]
    assert spread(TWINS, 1.0, 3) == [0, 2, 1]


@pytest.mark.parametrize("diversity", [0.0, 0.3, 1.0])
def test_what_is_all_alike_is_ranked_by_score(diversity: float) -> None:
    alike = [Candidate(score, [1.0, 1.0]) for score in (0.2, 0.9, 0.5)]
    assert spread(alike, diversity, 3)[0] == 1
    assert spread([], diversity, 3) == []
    assert spread(alike[:1], diversity, 3) == [0]


# No closer to each other than scores are: the smallest differences vanish when they are stretched.
SCORES = st.integers(-100, 3_000).map(lambda number: number / 100)
VECTORS = st.lists(st.floats(0.1, 1), min_size=3, max_size=3)


@given(
    st.lists(st.builds(Candidate, SCORES, VECTORS), max_size=12),
    st.floats(0, 1),
    st.integers(1, 15),
)
def test_each_place_is_chosen_once_and_the_best_first(
    candidates: list[Candidate], diversity: float, count: int
) -> None:
    found = spread(candidates, diversity, count)
    assert len(found) == len(set(found)) == min(count, len(candidates))
    assert not found or candidates[found[0]].score == max(one.score for one in candidates)
