"""A second way to a server, that can be cut."""

import asyncio
import contextlib
from pathlib import Path
from typing import Self


class Detour:
    def __init__(self, target: Path, side: Path) -> None:
        self._target, self._side = target, side
        self._writers: set[asyncio.StreamWriter] = set()
        self.taken = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self._side)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.cut()

    async def cut(self) -> None:
        """Nobody comes through any more. `taken` says that somebody did."""
        self._server.close()
        self._side.unlink(missing_ok=True)
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_unix_connection(self._target)
        self._writers |= {writer, here}
        self.taken.set()
        await asyncio.gather(_pass_on(reader, here), _pass_on(there, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.close()
