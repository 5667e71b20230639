"""The HTTP face: OpenAI's embeddings API as far as one embedding model has it."""

import asyncio
import base64
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.models.encoder import MODEL, Encoder
from local.models.inputs import BadRequest, Text, Wanted, counted, parse
from local.models.line import Line, LineFull

BODY_BYTES = 4 * 1024 * 1024
# What proxies write for a client that left; nobody reads it.
CLIENT_LEFT = 499

T = TypeVar("T")


def application(encoder: Encoder, line: Line) -> Starlette:
    """The app over a loaded model. It closes the line when it ends."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        line.close()

    async def embeddings(request: Request) -> Response:
        return await _embeddings(request, encoder, line)

    return Starlette(
        routes=[
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", _models),
            Route("/healthz", _healthz),
        ],
        lifespan=lifespan,
    )


async def _embeddings(request: Request, encoder: Encoder, line: Line) -> Response:
    try:
        wanted = parse(await _body(request))
        tokens = await asyncio.to_thread(counted, wanted.texts, encoder.count)
        vectors = await _while_connected(request, line.run(_embed(encoder), wanted.texts))
    except BadRequest as error:
        return _failure(400, error.message, error.parameter, error.code)
    except LineFull as full:
        response = _failure(429, "too many requests are waiting", "", "rate_limit_exceeded")
        response.headers["Retry-After"] = str(full.retry_after)
        return response
    except ClientDisconnect:
        return Response(status_code=CLIENT_LEFT)
    return JSONResponse(_reply(wanted, vectors, tokens))


def _embed(encoder: Encoder) -> Callable[[Text], list[float]]:
    def embed(item: Text) -> list[float]:
        return encoder.embed(item.purpose, item.text)

    return embed


async def _body(request: Request) -> bytes:
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > BODY_BYTES:
            raise BadRequest(f"the body is above {BODY_BYTES} bytes", code="body_too_large")
    return bytes(parts)


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result, or ClientDisconnect as soon as nobody waits for it."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _reply(wanted: Wanted, vectors: list[list[float]], tokens: int) -> dict[str, object]:
    shape = _packed if wanted.base64 else list
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": shape(vector)}
            for index, vector in enumerate(vectors)
        ],
        "model": MODEL,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _failure(status: int, message: str, parameter: str, code: str) -> JSONResponse:
    kind = "invalid_request_error" if status == 400 else "rate_limit_error"  # noqa: PLR2004
    error = {"message": message, "type": kind, "param": parameter or None, "code": code}
    return JSONResponse({"error": error}, status_code=status)


async def _models(_request: Request) -> Response:
    model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "sluice"}
    return JSONResponse({"object": "list", "data": [model]})


async def _healthz(_request: Request) -> Response:
    return JSONResponse({"status": "ready", "model": MODEL})
