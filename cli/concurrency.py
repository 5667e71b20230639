"""Work on many items, a bounded number at once; the first failure ends the rest."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


async def each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, at_once: int) -> None:
    """Await `work` of every item. An exception of one cancels the others and is raised."""
    remaining = iter(items)
    workers = [asyncio.create_task(_drain(remaining, work)) for _ in range(at_once)]
    try:
        done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        for worker in done:
            worker.result()
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _drain(remaining: Iterator[T], work: Callable[[T], Awaitable[None]]) -> None:
    for item in remaining:
        await work(item)
