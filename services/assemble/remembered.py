"""What was found out about a text before: those that are found once are found again."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

TEXTS = 1_024
CHARACTERS = 4_096  # of a text worth keeping: a passage has fewer


def remembered(judge: Callable[[str], T]) -> Callable[[str], T]:
    """`judge`, which always says the same of the same text, and is asked once of the last TEXTS."""
    known = lru_cache(maxsize=TEXTS)(judge)

    def judged(text: str) -> T:
        return known(text) if len(text) <= CHARACTERS else judge(text)

    return judged
