"""HTTP connections: bounded in number, and in how long they may stay without a request in work."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar
from uuid import uuid4

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from chassis.errors import InvalidInput
from chassis.serve import LAST_CALLS
from gateway.problem import refusal

# Of a head that is not complete yet, beyond what came with its first byte.
HEAD_BYTES = 64 * 1024
# Requests that a client may send before the one in work is answered.
PIPELINED = 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """Most connections at once; seconds for a request's head, and between two requests.

    `stalled_seconds` is how long a client may leave unread what was sent to it.
    """

    connections: int
    head_seconds: float = 10.0
    idle_seconds: int = 30
    stalled_seconds: float = 10.0


class Connection(HttpToolsProtocol):
    """Ends when the head of a request is not complete in time, or too long, or sent too soon.

    Uvicorn watches none of it.

    The time runs from the connection's begin, then from the first byte after a response: what
    remains of a body that nobody reads any more is bounded by it too. It ends as well when a
    client stops reading a response, which would keep the work for it waiting.
    """

    bounds: ClassVar[Bounds]
    _overdue: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _is_last: bool = False
    # What is answered now: `cycle` is the newest request, before which others may still wait.
    _working: RequestResponseCycle | None = None
    _in_head: bool = False
    _head_bytes: int = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > self.bounds.connections:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        was_in_head = self._in_head
        super().data_received(data)
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("the head is too long")
        if self._is_last and self.cycle is not None:
            self.cycle.keep_alive = False
        self._watch()

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self.pipeline) >= PIPELINED:
            raise InvalidInput("too many requests wait for their turn", field="")
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        self._move()
        if self._working is not None and self._is_working():
            self._working.disconnected = True
            self._working.message_event.set()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Ends after the request in work, or the one that a client sends before it hears of it."""
        self._is_last = True
        if not self._is_working():
            self.loop.call_later(LAST_CALLS, self._shut_down)
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the parser's words
        """A problem like any other, where uvicorn would send plain text."""
        request_id = uuid4().hex
        error = InvalidInput("the request is not valid HTTP", field="", reason="MALFORMED")
        problem = refusal(request_id, error)
        names = [(b"x-request-id", request_id.encode()), (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % line for line in (*problem.raw_headers, *names))
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[400], head, bytes(problem.body)))
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.bounds.stalled_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._move()
        super().resume_writing()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._working = cycle
        super()._start_asgi_task(cycle, app)

    def _is_working(self) -> bool:
        return self._working is not None and not self._working.response_complete

    def _shut_down(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _move(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _watch(self) -> None:
        if self._is_working():
            self._unwatch()
        elif self._overdue is None and not self.transport.is_closing():
            # Closing would wait for a client that does not read.
            self._overdue = self.loop.call_later(self.bounds.head_seconds, self.transport.abort)

    def _unwatch(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None


def connection_within(bounds: Bounds) -> type[Connection]:
    """The protocol as uvicorn wants it, a class, with these bounds."""
    return type("BoundedConnection", (Connection,), {"bounds": bounds})
