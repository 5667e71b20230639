"""One time limit for many short calls, watched by one timer."""

import asyncio
from dataclasses import dataclass
from typing import Any

# A timer that comes later than this, in seconds, tells that the loop stood still.
STALL = 0.01


@dataclass(slots=True)
class _Call:
    end: float
    cancelled: int  # how often its task was before
    renewed: bool = False


class Watchdog:
    """Cancels a task whose call outlasts `limit` seconds; `asyncio.timeout` at a tenth of its cost.

    A task has one call at a time. Between `begin` and `end` it only awaits, so that a cancellation
    always arrives there.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        # In order of their ends, since all have the same limit.
        self._calls: dict[asyncio.Task[Any], _Call] = {}
        self._overdue: dict[asyncio.Task[Any], _Call] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> asyncio.Task[Any]:
        """Watch the running task until `end`."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a call is made from a task")
        loop = asyncio.get_running_loop()
        end = loop.time() + self._limit
        self._calls[task] = _Call(end, task.cancelling())
        if self._timer is None:
            self._timer = loop.call_at(end, self._look, loop, end)
        return task

    def end(self, task: asyncio.Task[Any]) -> bool:
        """Whether the watchdog cancelled it, and nobody else did."""
        if self._calls.pop(task, None) or task not in self._overdue:
            return False
        return task.uncancel() <= self._overdue.pop(task).cancelled

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._timer = None
        now = loop.time()
        if now - due > STALL:
            self._renew(now + self._limit)
        for task, call in list(self._calls.items()):
            if call.end > now:
                self._timer = loop.call_at(call.end, self._look, loop, call.end)
                return
            self._overdue[task] = self._calls.pop(task)
            task.cancel()

    def _renew(self, end: float) -> None:
        """Something held up the loop, and answers may lie unread: once more the limit, but once."""
        for call in self._calls.values():
            if not call.renewed:
                call.end, call.renewed = end, True
        self._calls = dict(sorted(self._calls.items(), key=lambda one: one[1].end))
