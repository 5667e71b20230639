"""What all gateways know together, in Redis: a script and a round trip a step, in bounded time."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, TypeAlias

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from capacity.evaluation import Evaluation, Script, bulk
from capacity.store import connect
from chassis.errors import Unavailable

# While Redis is lost one decision in so many seconds tries it; the others do not wait for it.
RETRY_EVERY = 0.5
Argument: TypeAlias = str | int | bytes

log = structlog.get_logger()


class StoreLost(Unavailable):
    """Redis did not answer in time, or has not for a moment and was not asked."""

    default_reason = "STORE_LOST"


@cache
def script(name: str) -> Script:
    """The script in this folder; `name` without its ending.

    It begins with the rules of its own folder, where that has some.
    """
    found = Path(str(files("gateway"))) / f"{name}.lua"
    parts = (found.with_name("rules.lua"), found)
    return Script.of("".join(part.read_text("utf-8") for part in parts if part.is_file()))


class Store:
    """Every step raises StoreLost when it is not answered within `limit` seconds.

    The client must not repeat commands by itself.
    """

    def __init__(
        self, redis: Redis, limit: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._redis = redis
        self._evaluation = Evaluation(redis, limit)
        self._limit = limit
        self._clock = clock
        self._retry_at: float | None = None

    @classmethod
    def connect(cls, url: str, limit: float) -> Self:
        """A store with a client of its own. Nothing is sent before the first step."""
        return cls(connect(url, limit), limit)

    @property
    def lost(self) -> bool:
        return self._retry_at is not None

    async def run(self, name: str, keys: Sequence[str], *arguments: Argument) -> list[Any]:
        """What the script replies: whole numbers, and bytes where it says so."""
        if not self._is_due():
            raise StoreLost("the shared state cannot be asked")
        try:
            words = [
                word if isinstance(word, bytes) else str(word).encode()
                for word in (len(keys), *keys, *arguments)
            ]
            packed = b"".join(map(bulk, words))
            reply: list[Any] = await self._evaluation.run(script(name), len(words), packed)
        except (RedisError, OSError, TimeoutError) as error:
            self._lose(error)
            raise StoreLost("the shared state cannot be asked") from error
        self._find()
        return reply

    async def configured(self, *names: str) -> dict[str, str]:
        """Settings of the server; none where it does not tell them. Raises StoreLost."""
        try:
            async with asyncio.timeout(self._limit):
                found = await self._redis.config_get(*names)
        except ResponseError:
            return {}
        except (RedisError, OSError, TimeoutError) as error:
            raise StoreLost("the shared state cannot be asked") from error
        return {str(name): str(value) for name, value in found.items()}

    async def close(self) -> None:
        self._evaluation.close()
        await self._redis.aclose()

    def _is_due(self) -> bool:
        if self._retry_at is None:
            return True
        due = self._clock() >= self._retry_at
        if due:
            self._retry_at = self._clock() + RETRY_EVERY
        return due

    def _lose(self, error: Exception) -> None:
        if not self.lost:
            log.warning("shared_state_lost", error=repr(error))
        self._retry_at = self._clock() + RETRY_EVERY

    def _find(self) -> None:
        if self.lost:
            log.warning("shared_state_restored")
        self._retry_at = None
