"""What is told about capacity to whoever collects metrics; nothing without an OpenTelemetry SDK."""

from opentelemetry import metrics

from capacity.pool import TOKEN, Workload
from capacity.reservation import UNKNOWN, Reservation
from capacity.snapshot import Mode, Room, Snapshot

_meter = metrics.get_meter("sluice.capacity")
_granted = _meter.create_counter(
    "sluice.capacity.granted", "{attempt}", "attempts admitted, by pool and class"
)
_refused = _meter.create_counter(
    "sluice.capacity.refused", "{attempt}", "attempts refused, by pool, class and reason"
)
_estimated = _meter.create_counter(
    "sluice.capacity.tokens.estimated", "{token}", "tokens reserved for attempts that told usage"
)
_used = _meter.create_counter(
    "sluice.capacity.tokens.used", "{token}", "tokens that those attempts used"
)
_unknown = _meter.create_counter(
    "sluice.capacity.tokens.unknown", "{token}", "tokens charged for attempts that told no usage"
)
_decision = _meter.create_histogram(
    "sluice.capacity.decision.duration",
    "s",
    "from asking for capacity to the answer",
    explicit_bucket_boundaries_advisory=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5),
)
_mode = _meter.create_gauge(
    "sluice.capacity.mode", description="0: shared, 1: local share, 2: closed"
)
_lost = _meter.create_counter("sluice.capacity.lost", description="times that Redis was lost")
_left = _meter.create_gauge(
    "sluice.capacity.left",
    description="share of what fits that is left, by pool, class and dimension, when looked at",
)
_in_flight = _meter.create_gauge(
    "sluice.capacity.in_flight",
    "{attempt}",
    "attempts at once, by pool and class, when last looked at",
)
_waiting = _meter.create_gauge(
    "sluice.capacity.waiting", "{attempt}", "attempts promised a start, when last looked at"
)
_cooldown = _meter.create_gauge(
    "sluice.capacity.cooldown", "s", "until a throttled pool admits again, when last looked at"
)

MODES = {Mode.SHARED: 0, Mode.LOCAL_SHARE: 1, Mode.CLOSED: 2}


class Measures:
    """The instruments with one pool's name."""

    def __init__(self, pool: str) -> None:
        self._pool = {"pool": pool}
        self._class = {workload: {"pool": pool, "class": workload.value} for workload in Workload}

    def granted(self, reservation: Reservation) -> None:
        _granted.add(1, self._class[reservation.workload])

    def refused(self, reservation: Reservation, reason: str) -> None:
        _refused.add(1, {**self._class[reservation.workload], "reason": reason})

    def decided(self, seconds: float) -> None:
        _decision.record(seconds, self._pool)

    def settled(self, reservation: Reservation) -> None:
        used, attributes = reservation.settlement(), self._class[reservation.workload]
        if used == UNKNOWN:
            _unknown.add(reservation.tokens, attributes)
        elif used >= 0:
            _estimated.add(reservation.tokens, attributes)
            _used.add(used // TOKEN, attributes)

    def seen(self, snapshot: Snapshot) -> None:
        """What the pool held when somebody looked."""
        for workload, room in (
            (Workload.INTERACTIVE, snapshot.pool),
            (Workload.BATCH, snapshot.batch),
        ):
            attributes = self._class[workload]
            for dimension, share in _shares(room).items():
                _left.set(share, {**attributes, "dimension": dimension})
            _in_flight.set(snapshot.in_flight[workload.value], attributes)
        _waiting.set(snapshot.waiting, self._pool)
        _cooldown.set(snapshot.cooldown, self._pool)

    def mode(self, mode: Mode) -> None:
        _mode.set(MODES[mode], self._pool)
        if mode is not Mode.SHARED:
            _lost.add(1, self._pool)


def _shares(room: Room) -> dict[str, float]:
    """What is left of each dimension, 0 to 1; nothing of what has no room at all."""
    places = room.places - room.in_flight
    return {
        "requests": room.requests.level / room.requests.size if room.requests.size else 0,
        "tokens": room.tokens.level / room.tokens.size if room.tokens.size else 0,
        "places": places / room.places if room.places else 0,
    }
