"""How many fit: found by doubling steps from a guess, so that little is measured in vain."""

from collections.abc import Callable

Fits = Callable[[int], bool]


def most(least: int, top: int, fits: Fits, guess: int = 0) -> int:
    """The largest number from `least` to `top` that fits, where fewer fit if more do.

    `least` is returned when nothing above it fits; it is not measured. A good `guess` saves time.
    """
    start = min(max(guess, least), top)
    if start == least or fits(start):
        return _upwards(start, top, fits)
    return _downwards(start, least, fits)


def _upwards(low: int, top: int, fits: Fits) -> int:
    step = 1
    while low < top:
        tried = min(low + step, top)
        if not fits(tried):
            return _between(low, tried, fits)
        low, step = tried, 2 * step
    return low


def _downwards(high: int, least: int, fits: Fits) -> int:
    step = 1
    while True:
        tried = max(high - step, least)
        if tried == least or fits(tried):
            return _between(tried, high, fits)
        high, step = tried, 2 * step


def _between(low: int, high: int, fits: Fits) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
