"""The one place that computes deadlines. A deadline is absolute and only ever shrinks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from chassis.errors import DeadlineExceeded

# Kept back at each hop, so that the caller of a hop can still say what happened.
HOP_MARGIN = 0.02


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left; zero or below when spent."""
        return self.at - time.monotonic()

    def earlier(self, seconds: float) -> "Deadline":
        """This deadline, or the one `seconds` from now if that comes first."""
        return Deadline(min(self.at, time.monotonic() + seconds))

    def for_hop(self) -> float:
        """Seconds to grant the next hop. Raises DeadlineExceeded when nothing is left."""
        left = self.remaining() - HOP_MARGIN
        if left <= 0:
            raise DeadlineExceeded("the time for this request is over")
        return left


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def current() -> Deadline | None:
    """Deadline of the request being served, None outside one."""
    return _current.get()


def enter(deadline: Deadline) -> None:
    """Set the deadline of the running task's request."""
    _current.set(deadline)


def within(seconds: float) -> Deadline:
    """The request's deadline capped at `seconds` from now."""
    deadline = current()
    return deadline.earlier(seconds) if deadline else Deadline.after(seconds)


@contextmanager
def keeping(seconds: float) -> Iterator[None]:
    """Let the block's work end so many seconds before the request's own deadline, if it has one."""
    whole = current()
    kept = _current.set(Deadline(whole.at - seconds) if whole else None)
    try:
        yield
    finally:
        _current.reset(kept)
