"""A model provider that admits everybody and writes down who came, by a clock of its own.

Each line of its log is `begin` or `end`, microseconds, the call's number, and the tokens that it
reports for the call. It ends when the answer is out or the caller is gone.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import re
import time
from pathlib import Path
from typing import TextIO

PROMPT = re.compile(r"tokens=(\d+)")
DELTAS = 4
SHORTEST = 0.1  # seconds of an answer
HEAD = (
    b"HTTP/1.1 200 OK\r\nconnection: close\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\n\r\n"
)
ANSWER = json.dumps(
    {"status": "answered", "answer": "Writes stop at 90 per cent [S1].", "source_ids": ["S1"]}
)


class Provider:
    """`longest` is seconds of an answer."""

    def __init__(self, log: TextIO, longest: float, draw: random.Random) -> None:
        self._log = log
        self._longest = longest
        self._draw = draw
        self._numbers = itertools.count()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Health checks open a connection and say nothing.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            asked = await _read(reader)
            await self._answer(asked, reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _answer(
        self, asked: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        body = json.loads(asked)
        written = self._draw.randrange(body["max_tokens"] // 2, body["max_tokens"] + 1)
        found = PROMPT.search(body["messages"][-1]["content"])
        read = int(found[1]) if found else 0
        number = next(self._numbers)
        self._tell("begin", number, read + written)
        gone = asyncio.create_task(reader.read(1))
        try:
            await self._stream(writer, gone, {"prompt_tokens": read, "completion_tokens": written})
        finally:
            gone.cancel()
            self._tell("end", number, read + written)

    async def _stream(
        self, writer: asyncio.StreamWriter, gone: asyncio.Task[bytes], usage: dict[str, int]
    ) -> None:
        writer.write(HEAD)
        pause = self._draw.uniform(SHORTEST, self._longest) / DELTAS
        size = -(-len(ANSWER) // DELTAS)
        for start in range(0, len(ANSWER), size):
            await asyncio.wait([gone], timeout=pause)
            if gone.done():
                return
            writer.write(_chunk({"content": ANSWER[start : start + size]}))
        writer.write(_chunk({}, "stop") + _event({"choices": [], "usage": usage}))
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()

    def _tell(self, kind: str, number: int, tokens: int) -> None:
        print(kind, time.monotonic_ns() // 1_000, number, tokens, file=self._log, flush=True)


async def _read(reader: asyncio.StreamReader) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"content-length: *(\d+)", head)
    return (await reader.readexactly(int(length[1]) if length else 0)).decode()


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _event(data: dict[str, object]) -> bytes:
    envelope = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    return f"data: {json.dumps({**envelope, **data})}\n\n".encode()


async def serve(port: int, log: TextIO, longest: float) -> None:
    provider = Provider(log, longest, random.Random(1))  # noqa: S311 - lengths of answers
    server = await asyncio.start_server(provider.connected, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--longest", type=float, required=True, help="seconds of an answer")
    given = parser.parse_args()
    with given.log.open("w") as log:
        asyncio.run(serve(given.port, log, given.longest))


if __name__ == "__main__":
    main()
