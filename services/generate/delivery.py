"""An answer as the events of a stream. Whoever stops reading stops the work for it too."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from services.generate.audience import Audience, Event
from services.generate.task import Answering, Task


async def deliver(answering: Answering, task: Task) -> AsyncGenerator[Event, None]:
    """The events in order, the last of them Final; to be closed as soon as nobody reads it.

    Closing waits until the work has ended, so that nothing is held or spent for a reader who left.
    """
    audience = Audience()
    work = asyncio.create_task(_answered(answering, task, audience))
    work.add_done_callback(lambda _: audience.end())
    try:
        async with aclosing(audience.events()) as events:
            async for event in events:
                yield event
        await work
    finally:
        work.cancel()
        await asyncio.wait((work,))


async def _answered(answering: Answering, task: Task, audience: Audience) -> None:
    await audience.conclude(await answering.answer(task, audience))
