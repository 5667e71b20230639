"""Scripts in Redis: one command on a connection of the client's pool, within a time limit.

The client's own way to send a command spends more time than all of this, on retries that are off
here and on a timer for each call.
"""

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Any, Self

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, ReadOnlyError

from capacity.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class Script:
    """`name` is what Redis calls it, as an argument of the protocol."""

    text: str
    name: bytes

    @classmethod
    def of(cls, text: str) -> Self:
        # SHA-1 is how Redis names scripts.
        digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        return cls(text, bulk(digest.encode()))


class Evaluation:
    """`limit` is seconds that one call may take. The client must not repeat commands by itself."""

    def __init__(self, redis: Redis, limit: float) -> None:
        self._connections = redis.connection_pool
        self._watchdog = Watchdog(limit)

    async def run(self, script: Script, count: int, arguments: bytes) -> Any:  # noqa: ANN401 - what the script replies
        """The script's reply to `count` arguments, each made by `bulk`; the first is how many keys.

        Raises what redis-py raises, OSError, and TimeoutError when the time is over.
        """
        task = self._watchdog.begin()
        try:
            return await self._evaluated(script, count, arguments)
        except asyncio.CancelledError:
            if not self._watchdog.end(task):
                raise
            raise TimeoutError("no reply within the time limit") from None
        finally:
            self._watchdog.end(task)

    def close(self) -> None:
        self._watchdog.close()

    async def _evaluated(self, script: Script, count: int, arguments: bytes) -> Any:  # noqa: ANN401 - as above
        connection = await self._connections.get_connection()  # type: ignore[no-untyped-call] # redis-py
        head = b"*%d\r\n" % (count + 2)
        try:
            await connection.send_packed_command(
                b"%b$7\r\nEVALSHA\r\n%b%b" % (head, script.name, arguments)
            )
            try:
                return await connection.read_response()
            except NoScriptError:
                text = bulk(script.text.encode())
                await connection.send_packed_command(
                    b"%b$4\r\nEVAL\r\n%b%b" % (head, text, arguments)
                )
                return await connection.read_response()
        except ReadOnlyError:
            # A primary that was demoted: another server may stand behind the same address now.
            await self._connections.disconnect()
            raise
        finally:
            await self._connections.release(connection)


def bulk(argument: bytes) -> bytes:
    """An argument as the protocol writes it."""
    return b"$%d\r\n%b\r\n" % (len(argument), argument)
