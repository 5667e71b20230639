"""What a pool holds at one moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from capacity.circuit import CircuitState
from capacity.pool import MICROSECONDS, REQUEST, TOKEN, WINDOW, Limits


class Mode(StrEnum):
    """Where decisions are made: in Redis, by this process's own share, or nowhere."""

    SHARED = "shared"
    LOCAL_SHARE = "local_share"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Dimension:
    """`limit` is a minute's, `size` what comes at once, `level` what is left of it (never < 0)."""

    limit: float
    size: float
    level: float

    @classmethod
    def measure(cls, unit: int, size: int, rate: int, level: float) -> Self:
        return cls((size + rate * WINDOW) / unit, size / unit, max(0.0, level / unit))


@dataclass(frozen=True, slots=True)
class Room:
    """`places` is how many attempts may run at once, `in_flight` how many do."""

    requests: Dimension
    tokens: Dimension
    places: int
    in_flight: int

    @classmethod
    def measure(
        cls, places: int, buckets: Sequence[int], levels: Sequence[float], in_flight: int
    ) -> Self:
        """`buckets` are size and rate of requests, then of tokens; all in units."""
        requests = Dimension.measure(REQUEST, buckets[0], buckets[1], levels[0])
        tokens = Dimension.measure(TOKEN, buckets[2], buckets[3], levels[1])
        return cls(requests, tokens, places, max(0, in_flight))


@dataclass(frozen=True, slots=True)
class State:
    """A pool's numbers in units and microseconds; the defaults are those of a pool without any."""

    places: int = 0
    batch_places: int = 0
    waiting: int = 0
    opens_in: int = 0
    cooldown: int = 0
    ramp_left: int = 0
    ramp: int = 0
    levels: tuple[float, ...] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`pool` is what everybody draws on, `batch` the part of it that batch may take.

    `in_flight` counts attempts by class, `waiting` those with a start in the near future.
    `cooldown` and `opens_in` are seconds until anything is admitted, `ramp` is the share of the
    refill that flows: 0 in a cooldown, 1 when its ramp is over. In the modes other than shared it
    is this process's own share that is shown.
    """

    pool: Room
    batch: Room
    in_flight: dict[str, int]
    waiting: int
    cooldown: float
    ramp: float
    circuit: CircuitState
    mode: Mode
    opens_in: float

    @classmethod
    def measure(
        cls, limits: Limits | None, state: State, mode: Mode, circuit: CircuitState
    ) -> Self:
        """Without limits there is no room."""
        places, batch_places, *buckets = limits.numbers() if limits else [0] * 10
        left = state.ramp_left / state.ramp if state.ramp else 0
        return cls(
            pool=Room.measure(places, buckets[:4], state.levels[:2], state.places),
            batch=Room.measure(batch_places, buckets[4:], state.levels[2:], state.batch_places),
            in_flight={
                "interactive": max(0, state.places - state.batch_places),
                "batch": max(0, state.batch_places),
            },
            waiting=state.waiting,
            cooldown=state.cooldown / MICROSECONDS,
            ramp=max(0.0, 1 - left),
            circuit=circuit,
            mode=mode,
            opens_in=state.opens_in / MICROSECONDS,
        )
