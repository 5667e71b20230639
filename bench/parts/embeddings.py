"""An embeddings provider of a fixed speed: so many inputs a second, one request after another.

Every text has a vector of its own, the same each time.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
import struct
from typing import Any

DIMENSIONS = 384
FLOATS = struct.Struct("<8I")


class Embeddings:
    """`rate` is inputs a second; 0 answers at once."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._turn = asyncio.Lock()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await self._reply(await _read(reader), writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _reply(self, inputs: list[str], writer: asyncio.StreamWriter) -> None:
        async with self._turn:
            if self._rate:
                await asyncio.sleep(len(inputs) / self._rate)
        data = [
            {"object": "embedding", "index": index, "embedding": vector(text)}
            for index, text in enumerate(inputs)
        ]
        body = json.dumps({"object": "list", "model": "scripted", "data": data}).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            + f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()


def vector(text: str) -> list[float]:
    """A direction of the text's own."""
    eight = FLOATS.unpack(hashlib.sha256(text.encode()).digest())
    return [number / 2**32 - 0.5 for number in eight] * (DIMENSIONS // len(eight))


async def _read(reader: asyncio.StreamReader) -> list[str]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"content-length: *(\d+)", head)
    body: dict[str, Any] = json.loads(await reader.readexactly(int(length[1]) if length else 0))
    inputs: list[str] = body["input"]
    return inputs


async def serve(port: int, rate: float) -> None:
    server = await asyncio.start_server(Embeddings(rate).connected, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0, help="inputs a second; 0 at once")
    given = parser.parse_args()
    asyncio.run(serve(given.port, given.rate))


if __name__ == "__main__":
    main()
