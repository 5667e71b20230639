"""HTTP connections: bounded in number, and in how long they may stay without a request in work."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar
from uuid import uuid4

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from chassis.errors import InvalidInput
from chassis.serve import LAST_CALLS
from gateway.problem import refusal


@dataclass(frozen=True, slots=True)
class Bounds:
    """Most connections at once; seconds for a request's head, and between two requests.

    `stalled_seconds` is how long a client may leave unread what was sent to it.
    """

    connections: int
    head_seconds: float = 10.0
    idle_seconds: int = 30
    stalled_seconds: float = 10.0


class Connection(H11Protocol):
    """Ends when the head of a request is not complete in time, which uvicorn does not watch.

    The time runs from the connection's begin, then from the first byte after a response: what
    remains of a body that nobody reads any more is bounded by it too. It ends as well when a
    client stops reading a response, which would keep the work for it waiting.
    """

    bounds: ClassVar[Bounds]
    _overdue: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _is_last: bool = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > self.bounds.connections:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_last and self.cycle is not None:
            self.cycle.keep_alive = False
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        self._move()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Ends after the request in work, or the one that a client sends before it hears of it."""
        self._is_last = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LAST_CALLS, self._shut_down)
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the parser's words
        """A problem like any other, where uvicorn would send plain text."""
        request_id = uuid4().hex
        error = InvalidInput("the request is not valid HTTP", field="", reason="MALFORMED")
        problem = refusal(request_id, error)
        names = [(b"x-request-id", request_id.encode()), (b"connection", b"close")]
        head = h11.Response(status_code=400, headers=[*problem.raw_headers, *names])
        for event in (head, h11.Data(data=bytes(problem.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.bounds.stalled_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._move()
        super().resume_writing()

    def _shut_down(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _move(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
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
