"""What stands around every HTTP request: its id, pages from elsewhere, and the last resort."""

import asyncio
import re
from collections.abc import Collection
from uuid import uuid4

import structlog
from fastapi import FastAPI
from opentelemetry import trace
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chassis.errors import InvalidInput, Unavailable
from gateway.problem import REFUSED, refusal
from gateway.quota import fields

# Two of these mean different things to whoever takes the first and whoever takes the last.
SINGLE = ("Authorization", "Content-Type")
REQUEST_ID = re.compile(r"[!-~]{1,64}")

# What a page from elsewhere may read of a response besides its body.
READABLE = ("RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id", "X-Trace-Id")

log = structlog.get_logger()


class Named:
    """Names each request by its own sane X-Request-Id or a new one, and says so in the response.

    A response says besides where its caller stands with the allowance, if that was asked.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        span = trace.get_current_span()
        # It may hold a document's id, or anything. Spans have the route besides.
        span.set_attribute("url.path", "REDACTED")
        request_id = _request_id(scope)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = _names(request_id, span) | fields(state.get("standings", ()))
                added = [(name.lower().encode(), value.encode()) for name, value in said.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        bound = structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            await self._app(scope, receive, named)
        finally:
            structlog.contextvars.reset_contextvars(**bound)


class Edge:
    """Every refusal leaves as a problem. What nobody foresaw is a 500 without a word about why.

    A header that may be there once is refused when it is there twice.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False
        failure: Exception | None = None

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            _refuse_doubled(scope)
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            # The server cancels a request only at its own end, and nobody waits for the task.
            failure = Unavailable("the gateway is stopping", reason="STOPPING")
        except Exception as error:  # the edge of the process: nothing may leave as it is
            if started or not isinstance(error, REFUSED):
                log.exception("request_failed")
            failure = error
        if failure is not None and not started:
            await refusal(scope["state"]["request_id"], failure)(scope, receive, send)


def admit_origins(app: FastAPI, origins: Collection[str]) -> None:
    """Let pages of these origins call and read. Their preflights carry no token and need none."""
    app.add_middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=("GET", "POST", "PUT", "DELETE"),
        allow_headers=("*",),  # clients' libraries send some of their own
        expose_headers=READABLE,
    )


def _refuse_doubled(scope: Scope) -> None:
    headers = Headers(scope=scope)
    for name in SINGLE:
        if len(headers.getlist(name)) > 1:
            raise InvalidInput("the header is there more than once", field=name)


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid4().hex


def _names(request_id: str, span: trace.Span) -> dict[str, str]:
    context = span.get_span_context()
    trace_id = {"X-Trace-Id": format(context.trace_id, "032x")} if context.is_valid else {}
    return {"X-Request-Id": request_id, **trace_id}


def without_query(app: ASGIApp) -> ASGIApp:
    """`app` as seen without query strings, which telemetry would record.

    A route that may read its own finds it in the request's state.
    """

    async def bare(scope: Scope, receive: Receive, send: Send) -> None:
        state = {**scope.get("state", {}), "query_string": scope.get("query_string", b"")}
        await app({**scope, "query_string": b"", "state": state}, receive, send)

    return bare
