"""The room of one process: what does not fit is refused at once, nothing queues."""

from collections.abc import Iterator
from contextlib import contextmanager

from chassis.errors import Exhausted


class Room:
    """Seats shared by every way in. One event loop, hence no lock."""

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self._taken = 0

    @contextmanager
    def seat(self) -> Iterator[None]:
        """A seat until the block ends, however it ends. Raises Exhausted when none is free."""
        if self._taken >= self._seats:
            raise Exhausted("too many questions at once; try again soon", reason="NO_ROOM")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
