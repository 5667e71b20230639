"""JSON logs on standard error: events with fields and the trace they belong to, no user text."""

import contextlib
import logging
import sys
from typing import TextIO, cast

import structlog
from opentelemetry import trace
from structlog.typing import EventDict, WrappedLogger


def start(process: str, level: str) -> None:
    """Send our events and the libraries' through one JSON formatter."""
    structlog.contextvars.bind_contextvars(process=process)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _add_trace,
    ]
    rendered: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
    structlog.configure(
        processors=[*shared, *rendered],
        # Not through the standard library's logging, which takes several times as long.
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", Output(sys.stderr))),
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *rendered,
        ],
    )
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(formatter)
    logging.basicConfig(handlers=[output], level=level.upper(), force=True)
    # These write a line a request, some with the request's address in it.
    for chatty in ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "qdrant_client"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


class Output:
    """A stream whose loss, such as a full disk or a closed pipe, is no failure of the work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> int:
        # There is nowhere left to say it.
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(line)
        return 0

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def _add_trace(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = format(context.trace_id, "032x")
        event["span_id"] = format(context.span_id, "016x")
    return event
