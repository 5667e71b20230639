"""A client that leaves ends the work that was done for it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog
from starlette.types import Receive

# Seconds within which most refusals are over.
UNWATCHED = 0.02

T = TypeVar("T")

log = structlog.get_logger()


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` returns, or None when the client left first: then the work is cancelled.

    The request's body has to have been read.
    """
    # In the request's own task: another one would cost a question that is refused a tenth, and so
    # would one that watches from the start.
    working = asyncio.current_task()
    if working is None:
        raise RuntimeError("a request is served by a task")
    gone = False

    async def watch() -> None:
        nonlocal gone
        # The body has been read: what follows in the request's own stream is only its end.
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        working.cancel()

    watching: asyncio.Task[None] | None = None

    def begin() -> None:
        nonlocal watching
        watching = asyncio.create_task(watch())

    beginning = asyncio.get_running_loop().call_later(UNWATCHED, begin)
    try:
        return await work
    except asyncio.CancelledError:
        # The server's end cancels too.
        if not gone or working.cancelling() > 1:
            raise
        log.info("client_left")
        return None
    finally:
        beginning.cancel()
        if gone:
            working.uncancel()
        if watching is not None:
            await _ended(watching)


@asynccontextmanager
async def alongside(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Do `work` while the block runs, and no longer."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        await _ended(task)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
