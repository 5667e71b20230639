"""What is told about capacity to whoever collects metrics; nothing without an OpenTelemetry SDK."""

from opentelemetry import metrics

from capacity.pool import TOKEN, Workload
from capacity.reservation import UNKNOWN, Reservation
from capacity.snapshot import Mode

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
    "sluice.capacity.decision.duration", "s", "from asking for capacity to the answer"
)
_mode = _meter.create_gauge(
    "sluice.capacity.mode", description="0: shared, 1: local share, 2: closed"
)
_lost = _meter.create_counter("sluice.capacity.lost", description="times that Redis was lost")

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

    def mode(self, mode: Mode) -> None:
        _mode.set(MODES[mode], self._pool)
        if mode is not Mode.SHARED:
            _lost.add(1, self._pool)
