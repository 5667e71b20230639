"""Work in a thread that ends when nobody waits for it any more."""

import threading


class Stopped(Exception):
    """Somebody asked for the end of this work; nobody is left to hear its outcome."""


class Stop:
    """Asked for from outside, looked at by the work between its steps."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def ask(self) -> None:
        self._asked.set()

    def check(self) -> None:
        """Raises Stopped once the end was asked for."""
        if self._asked.is_set():
            raise Stopped


NEVER = Stop()
"""For work whose caller waits for its end."""
