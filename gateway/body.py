"""Request bodies: JSON of bounded size that arrives in bounded time."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from inspect import signature
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

BODY_BYTES = 64 * 1024
BODY_SECONDS = 10.0
# A client that is still sending sees the refusal only if what it sends is taken in.
DRAINED_BYTES = 1024 * 1024

# Where a request's scope holds what has been read of it.
_READ = "sluice.request"

TOO_SLOW, TOO_LARGE, NO_JSON = 408, 413, 415


class JsonRequest(Request):
    """A request whose body is read within the bounds. Raises HTTPException for any other."""

    most: ClassVar[int] = BODY_BYTES

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            self._require_json()
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    self._body = await self._read()
            except TimeoutError:
                raise HTTPException(TOO_SLOW) from None
        return self._body

    async def json(self) -> Any:  # noqa: ANN401 - JSON is anything
        # Bad bytes become lone surrogates, so that the field they stand in can be named.
        text = (await self.body()).decode("utf-8", "surrogateescape")
        return json.loads(text)

    def _require_json(self) -> None:
        kind, _, _ = self.headers.get("content-type", "").partition(";")
        if kind.strip().lower() != "application/json" or "content-encoding" in self.headers:
            raise HTTPException(NO_JSON)

    async def _read(self) -> bytes:
        body, size = bytearray(), 0
        async for piece in self.stream():
            size += len(piece)
            if size > DRAINED_BYTES:
                break
            if size <= self.most:
                body += piece
        if size > self.most:
            raise HTTPException(TOO_LARGE)
        return bytes(body)


class JsonRoute(APIRoute):
    """A route that reads its body as a JsonRequest.

    What is right is read at once, in less than a tenth of the framework's time. The framework says
    what is wrong with the rest.
    """

    request: ClassVar[type[JsonRequest]] = JsonRequest

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as the framework's own
        super().__init__(*args, **options)
        takes = signature(self.endpoint).parameters
        self._model = takes["body"].annotation if [*takes] == ["request", "body"] else None
        self._framework, self.app = self.app, self.serve

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = self.request(scope, receive)
        body = read(self._model, await request.body()) if self._model else None
        if body is None:
            scope[_READ] = request
            await self._framework(scope, receive, send)
        else:
            response = await self.endpoint(request=request, body=body)
            await response(scope, receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_read(request: Request) -> Response:
            return await handle(request.scope[_READ])

        return handle_read


def read(model: type[BaseModel], body: bytes) -> BaseModel | None:
    """What the body says, or None where something is wrong with it."""
    try:
        return model.model_validate_json(body)
    except ValidationError:
        return None
