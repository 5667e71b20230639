"""One call to a model, told by OpenTelemetry's conventions for generative AI; never its text."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from opentelemetry import metrics, trace

from chassis.errors import SluiceError

Name = Literal["chat", "embeddings"]

# The protocol that is spoken, whoever answers.
PROTOCOL = "openai"

_tracer = trace.get_tracer("sluice.providers")
_meter = metrics.get_meter("sluice.providers")
_duration = _meter.create_histogram(
    "gen_ai.client.operation.duration",
    "s",
    "time of a call to a model, by operation and model, and by why it failed",
    explicit_bucket_boundaries_advisory=(
        *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
        *(1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
    ),
)
_tokens = _meter.create_histogram(
    "gen_ai.client.token.usage",
    "{token}",
    "tokens of a call to a model as its provider reports them, by operation, model and type",
    explicit_bucket_boundaries_advisory=tuple(4**power for power in range(11)),
)


@dataclass(slots=True)
class Used:
    """Tokens of the call; None where the provider does not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@contextmanager
def operation(name: Name, model: str) -> Iterator[Used]:
    """The span and the measures of one call, which lasts as long as the block.

    The span is nobody's parent, so that a stream may be left in another context than it began in.
    """
    attributes = {
        "gen_ai.operation.name": name,
        "gen_ai.provider.name": PROTOCOL,
        "gen_ai.request.model": model,
    }
    span = _tracer.start_span(f"{name} {model}", kind=trace.SpanKind.CLIENT, attributes=attributes)
    used, began, failure = Used(), time.monotonic(), ""
    try:
        yield used
    except SluiceError as error:
        failure = error.reason
        raise
    except (asyncio.CancelledError, GeneratorExit):
        failure = "cancelled"
        raise
    finally:
        _tell(span, attributes, used)
        failed = {"error.type": failure} if failure else {}
        span.set_attributes(failed)
        if failure not in {"", "cancelled"}:
            span.set_status(trace.StatusCode.ERROR, failure)
        span.end()
        _duration.record(time.monotonic() - began, {**attributes, **failed})


def _tell(span: trace.Span, attributes: dict[str, str], used: Used) -> None:
    if used.input_tokens is not None:
        span.set_attribute("gen_ai.usage.input_tokens", used.input_tokens)
        _tokens.record(used.input_tokens, {**attributes, "gen_ai.token.type": "input"})
    if used.output_tokens is not None:
        span.set_attribute("gen_ai.usage.output_tokens", used.output_tokens)
        _tokens.record(used.output_tokens, {**attributes, "gen_ai.token.type": "output"})
