"""What is told to whoever collects metrics: nothing without an SDK."""

from opentelemetry import metrics

from chassis.measures import SECONDS

_meter = metrics.get_meter("sluice.gateway")
_refused = _meter.create_counter(
    "sluice.gateway.refused",
    "{question}",
    "questions refused, by reason; CAPACITY counts answers that capacity was missing for",
)
_in_flight = _meter.create_up_down_counter(
    "sluice.gateway.in_flight", "{question}", "questions that hold a seat of this process"
)
_waiting = _meter.create_up_down_counter(
    "sluice.gateway.waiting", "{question}", "questions that wait for a seat of this process"
)
_answered = _meter.create_counter(
    "sluice.gateway.answered", "{question}", "what came of questions, by mode and reason"
)
_answer_time = _meter.create_histogram(
    "sluice.gateway.answer.duration",
    "s",
    "time of an answered question, by mode",
    explicit_bucket_boundaries_advisory=SECONDS,
)
_retracted = _meter.create_counter(
    "sluice.gateway.retracted", "{answer}", "streams whose shown text was withdrawn, by reason"
)


def answered(mode: str, reason: str, seconds: float) -> None:
    _answered.add(1, {"mode": mode, "reason": reason})
    _answer_time.record(seconds, {"mode": mode})


def retracted(reason: str) -> None:
    _retracted.add(1, {"reason": reason})


def refused(reason: str) -> None:
    _refused.add(1, {"reason": reason})


def idle() -> None:
    """A process without questions has numbers too: who scales by them must not guess."""
    _in_flight.add(0)
    _waiting.add(0)


def queued() -> None:
    _waiting.add(1)


def unqueued() -> None:
    _waiting.add(-1)


def seated() -> None:
    _in_flight.add(1)


def left() -> None:
    _in_flight.add(-1)
