"""One time limit for many short calls, watched by one timer."""

import asyncio
from typing import Any


class Watchdog:
    """Cancels a task whose call outlasts `limit` seconds; `asyncio.timeout` at a tenth of its cost.

    A task has one call at a time. Between `begin` and `end` it only awaits, so that a cancellation
    always arrives there.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        # In order of their ends, since all have the same limit; and how often each was cancelled.
        self._ends: dict[asyncio.Task[Any], tuple[float, int]] = {}
        self._overdue: dict[asyncio.Task[Any], int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> asyncio.Task[Any]:
        """Watch the running task until `end`."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call is made from a task")
        loop = asyncio.get_running_loop()
        end = loop.time() + self._limit
        self._ends[task] = end, task.cancelling()
        if self._timer is None:
            self._timer = loop.call_at(end, self._look, loop)
        return task

    def end(self, task: asyncio.Task[Any]) -> bool:
        """Whether the watchdog cancelled it, and nobody else did."""
        if self._ends.pop(task, None) or task not in self._overdue:
            return False
        return task.uncancel() <= self._overdue.pop(task)

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for task, (end, cancelled) in list(self._ends.items()):
            if end > now:
                self._timer = loop.call_at(end, self._look, loop)
                return
            del self._ends[task]
            self._overdue[task] = cancelled
            task.cancel()
