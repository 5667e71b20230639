from random import Random

import pytest

from bench.parts.windows import Change, excess, most_at_once, most_within, percentile, used

BURST, RATE = 10, 0.001  # an amount a microsecond


def test_a_bucket_taken_as_it_refills_is_within_its_bound() -> None:
    changes = [Change(0, 10), *(Change(1_000 * second, 1) for second in range(1, 50))]
    assert excess(changes, BURST, RATE) == pytest.approx(0)


@pytest.mark.parametrize("early", [10_001, 11_500, 12_999])
def test_one_charge_too_early_is_seen_in_any_window(early: int) -> None:
    changes = [Change(0, 10), Change(10_000, 10), Change(early, 3)]
    assert excess(changes, BURST, RATE) == pytest.approx(23 - BURST - RATE * early)


def test_what_was_given_back_may_be_taken_again() -> None:
    changes = [Change(0, 10), Change(5, -4), Change(6, 4)]
    assert excess(changes, BURST, RATE) < 0.01
    assert excess([Change(0, 10), Change(6, 4)], BURST, RATE) > 3.9


def test_every_window_is_looked_at() -> None:
    draw = Random(3)
    changes = [Change(draw.randrange(100_000), draw.choice([3, 5, -2])) for _ in range(60)]
    changes.sort(key=lambda change: change.at)
    slow = max(
        sum(change.amount for change in changes[first : last + 1])
        - BURST
        - RATE * (changes[last].at - changes[first].at)
        for first in range(len(changes))
        for last in range(first, len(changes))
    )
    assert excess(changes, BURST, RATE) == pytest.approx(slow)


def test_spans_that_touch_are_not_at_once() -> None:
    assert most_at_once([(0, 5), (5, 9), (6, 7), (8, 10)]) == 2
    assert most_at_once([]) == 0


def test_the_fullest_window_is_found() -> None:
    changes = [Change(0, 1), Change(9, 4), Change(10, 2), Change(30, 5)]
    assert most_within(changes, 10) == 6
    assert most_within(changes, 11) == 7


def test_what_an_empty_bucket_gains_is_used_or_not() -> None:
    drained = [Change(0, 4), Change(1, 6)]
    all_of_it = [Change(1_000 * step, 1) for step in range(1, 51)]
    half_of_it = [Change(2_000 * step, 1) for step in range(1, 26)]
    assert used([*drained, *all_of_it], BURST, RATE, 0.1) == pytest.approx(1, abs=0.001)
    assert used([*drained, *half_of_it], BURST, RATE, 0.1) == pytest.approx(0.5, abs=0.001)
    assert used([Change(0, 4), Change(90_000, 4)], BURST, RATE, 0.1) == 0


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([5, 1, 3], 0.5) == 3
    assert percentile([5, 1, 3], 0.99) == 5
