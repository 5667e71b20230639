from hypothesis import given
from hypothesis import strategies as st

from services.ingest.fit import most


@given(st.integers(0, 50), st.integers(0, 200), st.integers(0, 300), st.integers(0, 300))
def test_the_most_that_fits_is_found_from_any_guess(
    least: int, more: int, limit: int, guess: int
) -> None:
    top = least + more
    measured: list[int] = []

    def fits(count: int) -> bool:
        measured.append(count)
        return count <= limit

    assert most(least, top, fits, guess) == min(max(limit, least), top)
    assert least not in measured
    assert len(measured) <= 20


def test_a_right_guess_is_confirmed_by_two_measurements() -> None:
    measured: list[int] = []

    def fits(count: int) -> bool:
        measured.append(count)
        return count <= 700

    assert most(0, 10_000, fits, 700) == 700
    assert measured == [700, 701]


def test_what_is_measured_without_a_guess_is_at_most_twice_what_fits() -> None:
    assert most(0, 10**9, lambda count: count <= 100 or _impossible(count)) == 100


def _impossible(count: int) -> bool:
    assert count <= 202
    return False


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 40))
def test_less_exactly_is_at_most_so_much_less(limit: int, guess: int, near: int) -> None:
    found = most(0, 200, lambda count: count <= limit, guess, near)
    assert min(limit, 200) - near < found <= min(limit, 200)
