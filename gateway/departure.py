"""A client that leaves ends the work that was done for it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog
from starlette.types import Receive

T = TypeVar("T")

log = structlog.get_logger()


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` returns, or None when the client left first: then the work is cancelled.

    The request's body has to have been read.
    """
    async with alongside(work) as working, alongside(_departure(receive)) as leaving:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        # The server says of every client whose response is complete that it has left.
        if working.done():
            return await working
        log.info("client_left")
        return None


@asynccontextmanager
async def alongside(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Do `work` while the block runs, and no longer."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _departure(receive: Receive) -> None:
    # The body has been read: what follows in the request's own stream is only its end.
    while (await receive())["type"] != "http.disconnect":
        pass
