"""What a Redis says of itself, for who wants to know whether it will do."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from capacity.refusals import CapacityUnavailable
from capacity.store import connect


@dataclass(frozen=True, slots=True)
class Inspected:
    """`ahead` is by how many seconds its clock is ahead of ours.

    `policy` is what it does where its memory is full, `lasting` whether each write is on its disk
    before it is acknowledged: None where it does not say, as services that others run.
    """

    version: str
    ahead: float
    policy: str
    lasting: bool | None


async def inspect(url: str, limit: float, clock: Callable[[], float] = time.time) -> Inspected:
    """Raises CapacityUnavailable, which tells what was wrong, after at most `limit` seconds."""
    redis = connect(url, limit)
    try:
        async with asyncio.timeout(limit):
            began = clock()
            seconds, microseconds = await redis.time()
            ours = (began + clock()) / 2
            about = await redis.info("server", "memory", "persistence")
            synced = await _synced(redis)
    except (AuthenticationError, ResponseError) as error:
        raise CapacityUnavailable("it refuses the password, or the user's rights") from error
    except (RedisError, OSError, TimeoutError) as error:
        raise CapacityUnavailable("nothing answers as Redis does") from error
    finally:
        await redis.aclose()
    return Inspected(
        version=str(about["redis_version"]),
        ahead=seconds + microseconds / 1e6 - ours,
        policy=str(about["maxmemory_policy"]),
        lasting=None if synced is None else bool(about["aof_enabled"]) and synced == "always",
    )


async def _synced(redis: Redis) -> str | None:
    try:
        found = await redis.config_get("appendfsync")
    except ResponseError:
        return None
    return str(found.get("appendfsync"))
