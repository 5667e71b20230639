"""How many fit: found by doubling, so that what is measured is never far above what fits."""

from collections.abc import Callable


def most(least: int, top: int, fits: Callable[[int], bool]) -> int:
    """The largest number from `least` to `top` that fits, where fewer fit if more do.

    `least` is returned when nothing above it fits; it is not measured.
    """
    low, step = least, 1
    while low < top:
        tried = min(low + step, top)
        if not fits(tried):
            return _between(low, tried, fits)
        low, step = tried, 2 * step
    return low


def _between(low: int, high: int, fits: Callable[[int], bool]) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
