"""What is told about admission to whoever collects metrics: nothing without an SDK."""

from opentelemetry import metrics

_meter = metrics.get_meter("sluice.gateway")
_refused = _meter.create_counter(
    "sluice.gateway.refused",
    "{question}",
    "questions refused, by reason; CAPACITY counts answers that capacity was missing for",
)
_in_flight = _meter.create_up_down_counter(
    "sluice.gateway.in_flight", "{question}", "questions that hold a seat of this process"
)


def refused(reason: str) -> None:
    _refused.add(1, {"reason": reason})


def seated() -> None:
    _in_flight.add(1)


def left() -> None:
    _in_flight.add(-1)
