"""Serving the HTTP face next to gRPC, in the same loop and the same life."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Iterator

import structlog
import uvicorn
from starlette.types import ASGIApp

from chassis.serve import EXIT_CANNOT_LISTEN
from gateway.connection import Bounds, connection_within

BACKLOG = 1_024

log = structlog.get_logger()


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the port, or exit 3 after a log line that names it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        mend = "free the port or set another one"
        log.error("cannot_listen", host=host, port=port, problem=error.strerror, mend=mend)  # noqa: TRY400
        raise SystemExit(EXIT_CANNOT_LISTEN) from None
    return listener


async def serve_http(
    app: ASGIApp, listener: socket.socket, bounds: Bounds, grace: float, stop: asyncio.Event
) -> None:
    """Serve until `stop`, then let running requests end within `grace` seconds."""
    config = uvicorn.Config(
        app,
        http=connection_within(bounds),
        log_config=None,
        log_level="warning",
        access_log=False,  # it would write addresses with what callers put there
        lifespan="off",
        ws="none",
        backlog=BACKLOG,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=bounds.idle_seconds,
        timeout_graceful_shutdown=math.ceil(grace),
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    server.should_exit = True
    await serving


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # One round of the loop accepts who has connected already: the end would reset them.
        await asyncio.sleep(0)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The process already listens for signals."""
        yield
