"""What is told about questions and about calls to a provider, which are counted apart.

sluice.generate.calls, sluice.generate.call.duration
    questions, by shape (buffered, streamed) and end (ok, cancelled, or why it failed)
sluice.generate.attempts, sluice.generate.attempt.duration
    calls to a provider, by candidate and end
sluice.generate.outcomes
    what came of questions, by mode and reason
sluice.generate.guard.refused
    requests that were too large or malformed, by field
sluice.generate.support
    support of the least supported sentence of each answer, by candidate
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import metrics, trace

from chassis.errors import SluiceError
from chassis.measures import SECONDS
from services.generate.failure import reason_of
from services.generate.verdict import Generated, Verdict

Tell = Callable[[str], None]

# The end of what met an error that is none of ours.
FAILED = "INTERNAL"

_meter = metrics.get_meter("sluice.generate")
_calls = _meter.create_counter("sluice.generate.calls", "{call}", "questions, by shape and end")
_call_time = _meter.create_histogram(
    "sluice.generate.call.duration",
    "s",
    "time of one question",
    explicit_bucket_boundaries_advisory=SECONDS,
)
_attempts = _meter.create_counter(
    "sluice.generate.attempts", "{attempt}", "calls to a provider, by candidate and end"
)
_attempt_time = _meter.create_histogram(
    "sluice.generate.attempt.duration",
    "s",
    "time of one call to a provider",
    explicit_bucket_boundaries_advisory=SECONDS,
)
_outcomes = _meter.create_counter(
    "sluice.generate.outcomes", "{answer}", "what came of questions, by mode and reason"
)
_refused = _meter.create_counter(
    "sluice.generate.guard.refused", "{request}", "requests that the guard refused, by field"
)
_support = _meter.create_histogram(
    "sluice.generate.support",
    "1",
    "support of the least supported sentence of an answer",
    explicit_bucket_boundaries_advisory=tuple(tenth / 10 for tenth in range(11)),
)


def span_event(name: str) -> None:
    """Told to the trace of the question."""
    span = trace.get_current_span()
    if span.is_recording():
        span.add_event(name)


@contextmanager
def question(tell: Tell, shape: str) -> Iterator[None]:
    """The probe of one question, all its attempts and waits included."""
    tell("call:begin")
    began = time.monotonic()
    end = FAILED
    try:
        yield
        end = "ok"
    except SluiceError as failure:
        end = reason_of(failure).name
        raise
    except asyncio.CancelledError:
        end = "cancelled"
        raise
    finally:
        tell(f"call:{_word(end)}")
        _calls.add(1, {"shape": shape, "end": end})
        _call_time.record(time.monotonic() - began, {"shape": shape})


@contextmanager
def attempt(tell: Tell, candidate: str) -> Iterator[Callable[[], None]]:
    """The probe of one call to a provider, which begins when what it yields is called.

    What was never sent is no attempt: a refusal of capacity leaves no trace here.
    """
    began: list[float] = []

    def begin() -> None:
        began.append(time.monotonic())
        tell("attempt:begin")

    end = FAILED
    try:
        yield begin
        end = "ok"
    except SluiceError as failure:
        end = failure.reason
        raise
    except asyncio.CancelledError:
        end = "cancelled"
        raise
    finally:
        if began:
            tell(f"attempt:{_word(end)}")
            _attempts.add(1, {"candidate": candidate, "end": end})
            _attempt_time.record(time.monotonic() - began[0], {"candidate": candidate})


def _word(end: str) -> str:
    return end if end in {"ok", "cancelled"} else "fail"


def labels(verdict: Verdict) -> dict[str, str]:
    reason = "NONE" if isinstance(verdict, Generated) else verdict.reason.name
    return {"mode": type(verdict).__name__.upper(), "reason": reason}


def outcome(verdict: Verdict) -> None:
    _outcomes.add(1, labels(verdict))


def refused(field: str) -> None:
    _refused.add(1, {"field": field.partition("[")[0]})


def support(candidate: str, share: float) -> None:
    _support.record(share, {"candidate": candidate})
