"""A model provider that writes at a fixed pace, and says in each delta when it sent it.

A question that holds `deltas=N` is answered in N of them; each holds the monotonic clock in
nanoseconds as a word. It keeps connections, as providers do. Each line of its log is `begin` or
`end`, microseconds of the same clock, and the call's number; a call ends when its answer is out or
its caller is gone.

It embeds too, every text alike and at once: that stands for embeddings that are known already.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import re
import time
from pathlib import Path
from typing import TextIO

import uvloop

from bench.parts.embeddings import DIMENSIONS

ASKED = re.compile(r"deltas=(\d+)")
SHORT = 20
HEAD = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\n\r\n"
)
OPENING = '{"status": "answered", "answer": "'
WORD = "word"
CLOSING = ' [S1]", "source_ids": ["S1"]}'


class Provider:
    """`pause` is seconds between two deltas; the first comes at once."""

    def __init__(self, log: TextIO, pause: float) -> None:
        self._log = log
        self._pause = pause
        self._numbers = itertools.count()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Health checks open a connection and say nothing.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            begun = b""
            while True:
                path, body = await read(reader, begun)
                if path.endswith("/embeddings"):
                    writer.write(embedded(body))
                    begun = b""
                    continue
                asked = ASKED.search(body)
                begun = await self._answer(int(asked[1]) if asked else SHORT, reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _answer(
        self, deltas: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        """What came of the next request meanwhile; of a caller who left nothing does."""
        number = next(self._numbers)
        self._tell("begin", number)
        gone = asyncio.create_task(reader.read(1))
        streaming = asyncio.create_task(self._stream(deltas, writer))
        try:
            await asyncio.wait((gone, streaming), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._tell("end", number)
            gone.cancel()
            streaming.cancel()
            begun, _ = await asyncio.gather(gone, streaming, return_exceptions=True)
        return begun if isinstance(begun, bytes) else b""

    async def _stream(self, deltas: int, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        began = time.monotonic()
        before, after = chunk({"content": WORD}).split(WORD.encode())
        for number in range(deltas):
            # A timer a delta and nothing else: many streams at once are to keep their pace.
            await asyncio.sleep(max(0.0, began + number * self._pause - time.monotonic()))
            word = f"{time.monotonic_ns()}"
            if number:
                writer.write(_piece(b"%b %b%b" % (before, word.encode(), after)))
            else:
                writer.write(_piece(chunk({"content": OPENING + word})))
        writer.write(_piece(chunk({"content": CLOSING}) + chunk({}, "stop")))
        usage = {"prompt_tokens": 100, "completion_tokens": deltas}
        last = event({"choices": [], "usage": usage}) + b"data: [DONE]\n\n"
        writer.write(_piece(last) + _piece(b""))
        await writer.drain()

    def _tell(self, kind: str, number: int) -> None:
        print(kind, time.monotonic_ns() // 1_000, number, file=self._log, flush=True)


def _piece(data: bytes) -> bytes:
    """A chunk of a body whose length nobody knows yet; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


async def read(reader: asyncio.StreamReader, begun: bytes = b"") -> tuple[str, str]:
    """The path and the body of a request, of which `begun` was read already."""
    head = (begun + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"content-length: *(\d+)", head)
    body = await reader.readexactly(int(length[1]) if length else 0)
    return head.split(" ")[1], body.decode()


def embedded(asked: str) -> bytes:
    vector = [DIMENSIONS**-0.5] * DIMENSIONS
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, _ in enumerate(json.loads(asked)["input"])
    ]
    body = json.dumps({"object": "list", "model": "scripted", "data": data}).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def event(data: dict[str, object]) -> bytes:
    envelope = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    return f"data: {json.dumps({**envelope, **data})}\n\n".encode()


async def serve(port: int, log: TextIO, pause: float) -> None:
    provider = Provider(log, pause)
    server = await asyncio.start_server(provider.connected, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--pause", type=float, required=True, help="seconds between two deltas")
    given = parser.parse_args()
    with given.log.open("w") as log:
        uvloop.run(serve(given.port, log, given.pause))


if __name__ == "__main__":
    main()
