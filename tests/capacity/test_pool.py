"""Limits become whole numbers that never admit more than the provider grants."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity import InvalidLimit, Limits
from capacity.pool import REQUEST, TOKEN, WINDOW

GOOD = {
    "requests_per_minute": 600,
    "tokens_per_minute": 60_000,
    "in_flight": 10,
    "max_reservation": 2_000,
}


def test_bucket_and_refill_of_a_minute_make_the_limit() -> None:
    places, batch_places, *buckets = Limits(600, 60_000, 10, 2_000).numbers()
    assert (places, batch_places) == (10, 8)
    assert buckets == [
        *(30 * REQUEST, 570 * REQUEST // WINDOW),
        *(3_000 * TOKEN, 57_000 * TOKEN // WINDOW),
        *(24 * REQUEST, 456 * REQUEST // WINDOW),
        *(2_400 * TOKEN, 45_600 * TOKEN // WINDOW),
    ]


@given(
    requests=st.floats(20, 1e8),
    tokens=st.floats(20_000, 1e9),
    reserve=st.floats(0, 0.9),
    in_flight=st.integers(1, 10_000),
)
def test_no_window_of_either_class_exceeds_its_limit(
    requests: float, tokens: float, reserve: float, in_flight: int
) -> None:
    limits = Limits(requests, tokens, in_flight, 1_000, reserve)
    places, batch_places, *buckets = limits.numbers()
    sizes, rates = buckets[::2], buckets[1::2]
    share = 1 - Fraction(str(reserve))
    granted = [Fraction(str(requests)) * REQUEST, Fraction(str(tokens)) * TOKEN]
    for size, rate, limit in zip(sizes, rates, granted + [g * share for g in granted], strict=True):
        assert size + rate * WINDOW <= limit
        assert size + (rate + 2) * WINDOW > limit
    assert 1 <= batch_places <= places == in_flight


def test_a_default_burst_holds_the_largest_reservation_of_either_class() -> None:
    _, _, *buckets = Limits(6, 60_000, 1, 8_000).numbers()
    assert buckets[::2] == [REQUEST * 5 // 4, 10_000 * TOKEN, REQUEST, 8_000 * TOKEN]


def test_a_decimal_share_is_meant_as_it_is_written() -> None:
    _, batch_places, *buckets = Limits(100, 60_000, 10, 100, interactive_reserve=0.3).numbers()
    assert batch_places == 7
    assert buckets[4] == 5 * REQUEST * 7 // 10


def test_batch_gets_nothing_where_all_is_reserved() -> None:
    _, batch_places, *buckets = Limits(600, 60_000, 10, 2_000, interactive_reserve=1).numbers()
    assert [batch_places, *buckets[4:]] == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("requests_per_minute", 0),
        ("requests_per_minute", -1),
        ("requests_per_minute", float("nan")),
        ("requests_per_minute", 1),
        ("tokens_per_minute", 0),
        ("tokens_per_minute", float("inf")),
        ("tokens_per_minute", 2_000),
        ("in_flight", 0),
        ("in_flight", 1.5),
        ("max_reservation", 0),
        ("interactive_reserve", -0.1),
        ("interactive_reserve", 1.1),
        ("interactive_reserve", float("nan")),
        ("request_burst", 0.5),
        ("request_burst", 1.2),
        ("request_burst", 2_000_000),
        ("token_burst", 0),
        ("token_burst", 1_999),
        ("token_burst", 200_000_000),
    ],
)
def test_a_limit_that_cannot_hold_is_refused_by_its_name(setting: str, value: float) -> None:
    with pytest.raises(InvalidLimit, match=f"^{setting}: ") as caught:
        Limits(**{**GOOD, setting: value})  # type: ignore[arg-type] # wrong on purpose
    assert caught.value.setting == setting
