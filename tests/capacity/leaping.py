"""Tests under a clock of their own: it leaps to the next timer, and stands still meanwhile."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class Loop(asyncio.SelectorEventLoop):
    """`now` is what it takes for the time, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Leaping(self))

    def time(self) -> float:
        return self.now


class _Leaping(selectors.DefaultSelector):
    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everything waits, and no timer runs")
        self._loop.now += timeout
        return super().select(0)


def leaping(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run the test on such a loop."""

    @functools.wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(test(*arguments, **named))

    return run
