"""One end for many waits, watched by one timer."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any


class TimeLimit:
    """Cancels a wait that goes on beyond `seconds` from now; `with limit:` stands around each.

    Such a wait raises TimeoutError, and so does one that begins later; nothing else is cancelled.
    An `asyncio.timeout` for every word of an answer took a fifth of the time that reading it takes.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._has_rung = False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)
        self._waiting: asyncio.Task[Any] | None = None
        self._cancelled_before = 0
        self._cancels = False

    @property
    def over(self) -> bool:
        """Also while something holds up the loop, and with it the timer."""
        return self._has_rung or self._clock() >= self._end

    def __enter__(self) -> None:
        if self.over:
            raise TimeoutError
        self._waiting = task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a wait is a task's")
        self._cancelled_before = task.cancelling()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task, self._waiting = self._waiting, None
        if task is None or not self._cancels:
            return
        self._cancels = False
        # Unless somebody else cancelled it, too.
        if task.uncancel() <= self._cancelled_before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def close(self) -> None:
        """No wait begins any more."""
        self._timer.cancel()

    def _ring(self) -> None:
        self._has_rung = True
        if self._waiting is not None:
            self._cancels = True
            self._waiting.cancel()
