"""What every process tells of the calls it serves to whoever collects metrics."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import metrics

# Bounds of a histogram of seconds: OpenTelemetry's own are made for milliseconds.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

_meter = metrics.get_meter("sluice.chassis")
_in_flight = _meter.create_up_down_counter(
    "sluice.rpc.in_flight", "{call}", "calls that this process is answering"
)
_duration = _meter.create_histogram(
    "rpc.server.call.duration",
    "s",
    "time of a call, by method and status code",
    explicit_bucket_boundaries_advisory=SECONDS,
)


@dataclass(slots=True)
class Served:
    """How a call ended: the name of its status code."""

    code: str = "OK"


def idle() -> None:
    """A process that was never called has a number too: who scales by it must not guess."""
    _in_flight.add(0)


@contextmanager
def served(method: str) -> Iterator[Served]:
    """The measure of one call of `method`, as service/method. The body says how it failed."""
    call, began = Served(), time.monotonic()
    _in_flight.add(1)
    try:
        yield call
    except asyncio.CancelledError:
        call.code = "CANCELLED"
        raise
    finally:
        _in_flight.add(-1)
        attributes = {"rpc.method": method, "rpc.response.status_code": call.code}
        _duration.record(time.monotonic() - began, attributes)
