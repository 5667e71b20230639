import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator

import structlog
import uvicorn

from chassis import logs
from chassis.settings import load
from local.models.encoder import Encoder
from local.models.line import Line
from local.models.server import application
from local.models.settings import ModelsSettings

EXIT_CANNOT_LISTEN = 3

log = structlog.get_logger()


class Server(uvicorn.Server):
    """uvicorn that ends with 0 on SIGTERM: the original raises the signal again at the end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.handle_exit, name, None)
        yield


def main() -> None:
    settings = load(ModelsSettings)
    logs.start("models", settings.log_level)
    listening = listen(settings.host, settings.models_port)
    app = application(Encoder(), Line(settings.models_requests))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=int(settings.grace_seconds),
    )
    log.info("listening", port=settings.models_port)
    Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """The bound socket, or the end of the process with a line that names the port."""
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError:
        log.error(  # noqa: TRY400 - the port is what helps
            "cannot_listen", port=port, mend="free the port or set SLUICE_MODELS_PORT"
        )
        raise SystemExit(EXIT_CANNOT_LISTEN) from None


if __name__ == "__main__":
    main()
