"""A model provider that answers at once, as a whole or as a stream of words, whichever is asked.

It keeps connections, and embeds as `deltas` does.
"""

import argparse
import asyncio
import contextlib
import json

import uvloop

from bench.parts.deltas import chunk, embedded, event, read

ANSWER = json.dumps(
    {
        "status": "answered",
        "answer": "The level of the harbour tanks is measured every minute [S1].",
        "source_ids": ["S1"],
    }
)
USAGE = {"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130}


def _streamed() -> bytes:
    words = [f" {word}" if number else word for number, word in enumerate(ANSWER.split(" "))]
    deltas = b"".join(chunk({"content": word}) for word in words)
    told = event({"choices": [], "usage": USAGE})
    return deltas + chunk({}, "stop") + told + b"data: [DONE]\n\n"


def _whole() -> bytes:
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    envelope = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted"}
    return json.dumps({**envelope, "choices": [choice], "usage": USAGE}).encode()


def _reply(kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


STREAMED = _reply("text/event-stream; charset=utf-8", _streamed())
WHOLE = _reply("application/json", _whole())


async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # Health checks open a connection and say nothing.
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            path, body = await read(reader)
            if path.endswith("/embeddings"):
                writer.write(embedded(body))
            else:
                writer.write(STREAMED if json.loads(body).get("stream") else WHOLE)
            await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def serve(port: int) -> None:
    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
