import asyncio
import logging
import signal
import sys

import structlog

from local.qdrant_node.database import Database
from local.qdrant_node.errors import StartError
from local.qdrant_node.server import add_health, add_services, build_server
from local.qdrant_node.settings import Settings, read_settings

_GRACE_SECONDS = 2.0
_FLUSH_SECONDS = 5.0

_log = structlog.get_logger()


async def run(settings: Settings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    server = build_server(settings.port)
    database = Database(settings.data)
    add_services(server, database)
    health = await add_health(server)
    await server.start()
    _log.info("started", port=settings.port, data=str(settings.data.resolve()))
    await flush_until(stopping, database)
    await health.enter_graceful_shutdown()
    await server.stop(_GRACE_SECONDS)
    database.close()
    _log.info("stopped")


async def flush_until(stopping: asyncio.Event, database: Database) -> None:
    """Shorten the write-ahead logs now and then; a failure is told, and tried again."""
    while not stopping.is_set():
        try:
            await asyncio.wait_for(stopping.wait(), _FLUSH_SECONDS)
        except TimeoutError:
            try:
                database.flush()
            except Exception as failure:  # noqa: BLE001 -- the engine raises nothing narrower
                _log.error("flush failed", detail=str(failure))


def main() -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        asyncio.run(run(read_settings()))
    except StartError as failure:
        sys.exit(f"qdrant node: {failure}")


main()
