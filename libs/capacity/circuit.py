"""Whether attempts make sense at all: a circuit that opens on repeated unavailability.

    closed --FAILURES in a row--> open --its pause is over--> probing --success--> closed
                                   ^                            |
                                   +------ failure, pause x 2 --+

Each process keeps its own, unlike a cooldown: a throttle is the account's, while unavailability may
be one process's alone (its network, its name service), and must not close the pool to the others.
"""

from collections.abc import Callable
from enum import StrEnum

from capacity.refusals import CapacityCircuitOpen
from capacity.reservation import Reservation

FAILURES = 5
FIRST_PAUSE = 2.0  # seconds
LONGEST_PAUSE = 60.0


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


class Circuit:
    """`clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._pause = FIRST_PAUSE
        self._until: float | None = None
        self._probe: Reservation | None = None

    @property
    def state(self) -> CircuitState:
        if self._until is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if self._clock() < self._until else CircuitState.PROBING

    def admit(self, reservation: Reservation) -> None:
        """Raises CapacityCircuitOpen, except for the one attempt that probes."""
        if self._until is None:
            return
        left = self._until - self._clock()
        if left > 0 or self._probe:
            raise CapacityCircuitOpen(
                "the provider was repeatedly unavailable", retry_after=left if left > 0 else None
            )
        self._probe = reservation

    def ended(self, reservation: Reservation) -> None:
        """It was settled or never granted. A probe that told nothing leaves room for the next."""
        if self._probe is reservation:
            self._probe = None

    def failed(self) -> None:
        if self.state is CircuitState.OPEN:
            return
        self._failures += 1
        if self._until is not None:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        elif self._failures < FAILURES:
            return
        self._until = self._clock() + self._pause
        self._probe = None

    def succeeded(self) -> None:
        self._failures, self._pause, self._until, self._probe = 0, FIRST_PAUSE, None, None
