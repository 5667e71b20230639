"""What a scripted provider can do with a request."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.scripted_provider.server import Exchange, Reply

STREAM = {"content-type": "text/event-stream; charset=utf-8"}
JSON = {"content-type": "application/json"}
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52}


def event(data: object) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def chunk(content: str | None = None, *, finish: str | None = None, **delta: object) -> bytes:
    """One delta of an answer."""
    choice = {"index": 0, "delta": {"content": content, **delta}, "finish_reason": finish}
    return event(_envelope([choice]))


def usage(counts: Mapping[str, int] = USAGE) -> bytes:
    """The usage of an answer, in a chunk without choices."""
    return event({**_envelope([]), "usage": counts})


def filter_results() -> bytes:
    """What a filtering provider sends first: results for the prompt and no choices."""
    return event({**_envelope([]), "prompt_filter_results": [{"prompt_index": 0}]})


def stream(*parts: bytes) -> Reply:
    """These bytes, each written by itself, then the connection's end."""

    async def reply(exchange: Exchange) -> None:
        exchange.head(200, STREAM)
        for part in parts:
            await exchange.write(part)

    return reply


def answer(text: str, *, pieces: int = 3, counts: Mapping[str, int] | None = USAGE) -> Reply:
    """A well-behaved stream of a whole answer; without usage where there are no counts."""
    return stream(*_whole(text, pieces, counts))


def filtered(text: str = "") -> Reply:
    """A filter ends the answer after this much of it."""
    return stream(chunk(text or None), chunk(None, finish="content_filter"), usage(), DONE)


def declined(text: str = "I cannot help with that.") -> Reply:
    """The model itself refuses, in deltas of their own kind."""
    return stream(*(chunk(refusal=word) for word in text.split()), chunk(finish="stop"), DONE)


class Driven:
    """A stream that sends what the test tells it to, when it does; the end comes with `end`."""

    def __init__(self) -> None:
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self._parts.put_nowait(part)

    def end(self) -> None:
        self._parts.put_nowait(None)

    async def __call__(self, exchange: Exchange) -> None:
        exchange.head(200, STREAM)
        while (part := await self._parts.get()) is not None:
            await exchange.write(part)


def dribbled(text: str) -> Reply:
    """The same, with every byte in its own write."""
    return stream(*(bytes([byte]) for byte in b"".join(_whole(text, 3, USAGE))))


def cut(text: str, *, deltas: int = 1) -> Reply:
    """Ends without a finish reason and without the end mark, as if complete."""
    return stream(*_whole(text, 5, USAGE)[: deltas + 1])


def broken(text: str) -> Reply:
    """A chunked body whose connection ends inside a chunk."""

    async def reply(exchange: Exchange) -> None:
        exchange.head(200, {**STREAM, "transfer-encoding": "chunked"})
        part = chunk(text)
        await exchange.write(f"{len(part):x}\r\n".encode() + part + b"\r\n40\r\nda")

    return reply


def stalled(*parts: bytes) -> Reply:
    """Sends these parts and then nothing until the client leaves; nothing at all without any."""

    async def reply(exchange: Exchange) -> None:
        if parts:
            exchange.head(200, STREAM)
        for part in parts:
            await exchange.write(part)
        await asyncio.wait_for(exchange.left.wait(), 30)

    return reply


def refused(status: int, code: str = "", headers: Mapping[str, str] | None = None) -> Reply:
    """An error status whose text must never reach a caller."""
    body = {"error": {"message": "upstream says: secret-detail", "code": code or None}}
    return document(body, status, headers)


def throttled(**headers: str) -> Reply:
    """A 429 with such headers, their names written with underscores."""
    return refused(
        429, "rate_limit_exceeded", {name.replace("_", "-"): text for name, text in headers.items()}
    )


def document(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A whole JSON body; text is sent as it is."""
    data = (body if isinstance(body, str) else json.dumps(body)).encode()

    async def reply(exchange: Exchange) -> None:
        exchange.head(status, {**JSON, **(headers or {}), "content-length": str(len(data))})
        await exchange.write(data)

    return reply


def vectors(
    embeddings: Sequence[Sequence[float]],
    order: Sequence[int] | None = None,
    counts: Mapping[str, int] | None = None,
) -> Reply:
    """An embeddings reply; `order` is the order in which the vectors stand in it."""
    data: list[dict[str, Any]] = [
        {"object": "embedding", "index": index, "embedding": list(embeddings[index])}
        for index in (range(len(embeddings)) if order is None else order)
    ]
    body: dict[str, Any] = {"object": "list", "model": "scripted", "data": data}
    return document({**body, "usage": counts} if counts is not None else body)


def _whole(text: str, pieces: int, counts: Mapping[str, int] | None) -> list[bytes]:
    size = max(1, -(-len(text) // pieces))
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    end = [usage(counts), DONE] if counts else [DONE]
    return [chunk("", role="assistant"), *map(chunk, parts), chunk(finish="stop"), *end]


def _envelope(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "scripted-1",
        "object": "chat.completion.chunk",
        "created": 1_767_225_600,
        "model": "scripted-model-2026",
        "choices": choices,
    }
