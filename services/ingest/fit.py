"""How many fit: found by doubling steps from a guess, so that little is measured in vain."""

from collections.abc import Callable

Fits = Callable[[int], bool]


def most(least: int, top: int, fits: Fits, guess: int = 0, near: int = 1) -> int:
    """The largest number from `least` to `top` that fits, where fewer fit if more do.

    `least` is returned when nothing above it fits; it is not measured. A good `guess` saves time,
    and so does a result that may be less than `near` below the largest.
    """
    start = min(max(guess, least), top)
    if start == least or fits(start):
        return _upwards(start, top, fits, near)
    return _downwards(start, least, fits, near)


def _upwards(low: int, top: int, fits: Fits, near: int) -> int:
    step = near
    while low < top:
        tried = min(low + step, top)
        if not fits(tried):
            return _between(low, tried, fits, near)
        low, step = tried, 2 * step
    return low


def _downwards(high: int, least: int, fits: Fits, near: int) -> int:
    step = near
    while True:
        tried = max(high - step, least)
        if tried == least or fits(tried):
            return _between(tried, high, fits, near)
        high, step = tried, 2 * step


def _between(low: int, high: int, fits: Fits, near: int) -> int:
    while high - low > near:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
