import asyncio
import signal
import sys

import uvloop

from local.qdrant_node.database import Database
from local.qdrant_node.errors import EngineFault, StartError, engine_faults
from local.qdrant_node.log import log
from local.qdrant_node.server import add_health, add_services, build_server
from local.qdrant_node.settings import Settings, read_settings

_GRACE_SECONDS = 2.0
_FLUSH_SECONDS = 5.0


async def run(settings: Settings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    server = build_server(settings.port)
    database = Database(settings.data)
    add_services(server, database)
    health = await add_health(server)
    await server.start()
    log("started", port=settings.port, data=str(settings.data.resolve()))
    await flush_until(stopping, database)
    await health.enter_graceful_shutdown()
    await server.stop(_GRACE_SECONDS)
    database.close()
    log("stopped")


async def flush_until(stopping: asyncio.Event, database: Database) -> None:
    """Shorten the write-ahead logs now and then; a failure is told, and tried again."""
    while not stopping.is_set():
        try:
            await asyncio.wait_for(stopping.wait(), _FLUSH_SECONDS)
        except TimeoutError:
            try:
                with engine_faults():
                    database.flush()
            except EngineFault as failure:
                log("flush failed", level="error", detail=str(failure))


def main() -> None:
    try:
        uvloop.run(run(read_settings()))
    except StartError as failure:
        sys.exit(f"qdrant node: {failure}")


if __name__ == "__main__":
    main()
