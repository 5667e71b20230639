"""What is told to whoever collects metrics: nothing without an SDK."""

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
_answered = _meter.create_counter(
    "sluice.gateway.answered", "{question}", "what came of questions, by mode and reason"
)
_retracted = _meter.create_counter(
    "sluice.gateway.retracted", "{answer}", "streams whose shown text was withdrawn, by reason"
)


def answered(mode: str, reason: str) -> None:
    _answered.add(1, {"mode": mode, "reason": reason})


def retracted(reason: str) -> None:
    _retracted.add(1, {"reason": reason})


def refused(reason: str) -> None:
    _refused.add(1, {"reason": reason})


def seated() -> None:
    _in_flight.add(1)


def left() -> None:
    _in_flight.add(-1)
