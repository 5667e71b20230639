"""What waits for a worker: the only file that knows the queue library."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from taskiq import AckableMessage, Context, TaskiqDepends
from taskiq.acks import AcknowledgeType
from taskiq.receiver import Receiver
from taskiq_redis import RedisStreamBroker

from gateway.jobs.ledger import QUEUE

TASK = "answer"  # as it stands in the entries, which rules.lua writes
GROUP = "workers"
READ_SECONDS = 1.0
PAUSE = 0.5  # seconds before Redis is tried again

Settle = Callable[[], Awaitable[None]]
Perform = Callable[[str, Settle], Awaitable[None]]

log = structlog.get_logger()


class Entries(RedisStreamBroker):
    """Entries of the stream, one at a time; one whose reader has died goes to another.

    The library's own reader looks after such only when something new comes, and leaves what is
    acknowledged in the stream for ever.
    """

    def __init__(self, url: str, idle: float) -> None:
        super().__init__(
            url,
            queue_name=QUEUE,
            consumer_group_name=GROUP,
            consumer_name=f"{socket.gethostname()}-{id(self):x}",
            consumer_id="0",  # also what was accepted before the first worker came
            xread_block=round(READ_SECONDS * 1e3),
            xread_count=1,
            idle_timeout=round(idle * 1e3),
            socket_timeout=5 * READ_SECONDS,
        )

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        lost = True
        async with Redis(connection_pool=self.connection_pool) as redis:
            while True:
                try:
                    if lost:
                        await self._declare_consumer_group()
                    lost = False
                    found = await self._abandoned(redis) or await self._new(redis)
                except (RedisError, OSError) as error:
                    lost = True
                    log.warning("queue_lost", error=repr(error))
                    await asyncio.sleep(PAUSE)
                    continue
                for name, fields in found:
                    yield AckableMessage(data=fields[b"data"], ack=self._settling(redis, name))

    async def _abandoned(self, redis: "Redis") -> list[Any]:
        _, found, *_ = await redis.xautoclaim(
            QUEUE, GROUP, self.consumer_name, self.idle_timeout, count=1
        )
        return list(found)

    async def _new(self, redis: "Redis") -> list[Any]:
        found: Any = await redis.xreadgroup(
            GROUP, self.consumer_name, {QUEUE: ">"}, count=self.count, block=self.block
        )
        return [entry for _, entries in found or () for entry in entries]

    def _settling(self, redis: "Redis", name: str) -> Settle:
        async def settle() -> None:
            async with redis.pipeline(transaction=True) as step:
                step.xack(QUEUE, GROUP, name)
                step.xdel(QUEUE, name)
                await step.execute()

        return settle


class Queue:
    """Hands each entry's job to `perform`, at most `concurrency` at once.

    `perform` settles the entry once the job itself is written down as begun, or as nothing to be
    begun; one that is not settled is handed out again after `idle` seconds.
    """

    def __init__(self, url: str, concurrency: int, idle: float, perform: Perform) -> None:
        # It logs what our own events tell better.
        logging.getLogger("taskiq").setLevel(logging.ERROR)
        self._entries = Entries(url, idle)
        self._entries.is_worker_process = True
        self._concurrency = concurrency

        async def handed_out(job_id: str, context: Annotated[Context, TaskiqDepends()]) -> None:
            await perform(job_id, partial(_settled, job_id, context))

        self._entries.register_task(handed_out, task_name=TASK)

    async def serve(self, grace: float, stop: asyncio.Event) -> None:
        """Hand out until `stop`, then let what is in work end within `grace` seconds."""
        receiver = Receiver(
            self._entries,
            validate_params=False,
            max_async_tasks=self._concurrency,
            ack_type=AcknowledgeType.MANUAL,
            run_startup=False,
            wait_tasks_timeout=grace,
        )
        await receiver.listen(stop)

    async def close(self) -> None:
        await self._entries.shutdown()


async def _settled(job_id: str, context: Context) -> None:
    try:
        await context.ack()
    except (RedisError, OSError) as error:
        # It will be handed out again, and its job will not be waiting.
        log.warning("entry_not_settled", job_id=job_id, error=repr(error))
