"""JSON logs on standard error: events with fields and the trace they belong to, no user text."""

import contextlib
import logging
import sys
import traceback
from collections.abc import Iterator
from typing import TextIO, cast

import structlog
from opentelemetry import trace
from structlog.typing import EventDict, ExcInfo, WrappedLogger

from chassis.errors import SluiceError


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
        structlog.processors.ExceptionRenderer(_told),
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
    # Below a warning libraries write what passes through them: addresses, replies, chunks.
    heard = max(logging.getLevelNamesMapping()[level.upper()], logging.WARNING)
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(formatter)
    output.setLevel(heard)  # some loggers have levels of their own
    logging.basicConfig(handlers=[output], level=heard, force=True)


def _told(exc_info: ExcInfo) -> str:
    """Where it was raised, and what it came from.

    Of errors that are not ours the class alone: their words repeat values, such as a text that
    could not be read.
    """
    return "\n".join(_lines(exc_info[1], set())).rstrip()


def _lines(error: BaseException | None, seen: set[int]) -> Iterator[str]:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield from _lines(error.__cause__ or error.__context__, seen)
    for one in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _lines(one, seen)
    yield from (line.rstrip() for line in traceback.format_tb(error.__traceback__))
    words = f": {error.message}" if isinstance(error, SluiceError) else ""
    yield f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.") + words


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
