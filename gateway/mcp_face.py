"""The MCP face, for agents: every request stands by itself, with its own token and no session."""

import asyncio
from collections.abc import Collection
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chassis.errors import Forbidden
from gateway import event_stream
from gateway.body import JsonRoute
from gateway.departure import unless_gone
from gateway.door import REFUSALS, TIMED, Door

_JSON_RPC = {
    "type": "object",
    "properties": {"jsonrpc": {"const": "2.0"}, "method": {"type": "string"}},
}
_MESSAGE = {
    "required": True,
    "content": {
        "application/json": {"schema": {**_JSON_RPC, "required": ["jsonrpc", "method"]}},
    },
}
# What the protocol refuses comes as its own error, in JSON.
_ANSWERED: dict[str, Any] = {
    "description": "the answer, as JSON or events",
    "content": {"application/json": {"schema": {"type": "object"}}, event_stream.MEDIA_TYPE: {}},
}
_NOTED = {"description": "a notification, which has no answer"}
_REFUSED: dict[str, Any] = {
    **REFUSALS["4XX"],
    "content": {**REFUSALS["4XX"]["content"], **_ANSWERED["content"]},
}


def router(door: Door, origins: Collection[str]) -> APIRouter:
    """The one route. `origins` are those of pages that may call it."""
    routes = APIRouter(route_class=JsonRoute)
    tools = _Tools(door)

    @routes.post(
        "/mcp",
        responses={200: _ANSWERED, 202: _NOTED, **REFUSALS, "4XX": _REFUSED},
        response_class=Response,
        openapi_extra={"requestBody": _MESSAGE, **TIMED},
    )
    async def exchange(request: Request) -> Response:
        """One message of the Model Context Protocol, streamable HTTP without sessions.

        The tools are `search_docs` and `answer`.
        """
        _check_origin(request, origins)
        body = await request.body()
        await door.enter(request.headers, door.answer_deadline)
        return _Exchange(await tools.loaded(), body)

    return routes


def _check_origin(request: Request, origins: Collection[str]) -> None:
    """Agents name no origin, pages always do: one that found its way here by a name of its own too.

    Raises Forbidden for all but those that are set.
    """
    origin = request.headers.get("origin")
    if origin is not None and origin not in origins:
        raise Forbidden("pages of this origin may not call here", reason="FOREIGN_ORIGIN")


class _Tools:
    """The tools, loaded by the first request: the SDK takes longer to import than the rest."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._app: ASGIApp | None = None

    async def loaded(self) -> ASGIApp:
        if self._app is None:
            # In a thread, so that the loop goes on meanwhile.
            self._app = await asyncio.to_thread(self._load)
        return self._app

    def _load(self) -> ASGIApp:
        from gateway.mcp_tools import tools_app  # noqa: PLC0415 - see above

        return tools_app(self._door)


class _Exchange(Response):
    """The SDK's response to a body that has been read. A client that leaves ends the work."""

    def __init__(self, app: ASGIApp, body: bytes) -> None:
        super().__init__()
        self._app = app
        self._unread: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            self._ended = message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        async def left() -> Message:
            message = await receive()
            # Then the SDK has only to tidy up, whoever hears the response.
            return await _never() if self._ended else message

        await unless_gone(left, self._respond(scope, sent))

    async def _respond(self, scope: Scope, send: Send) -> None:
        await self._app(scope, self._body, send)

    async def _body(self) -> Message:
        message, self._unread = self._unread, None
        # Nothing follows the body but the client's departure, which is watched for outside.
        return message or await _never()


async def _never() -> Message:
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never
