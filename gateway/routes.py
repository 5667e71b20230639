"""The HTTP face: what each address does, and in which order a question is admitted."""

from collections.abc import Collection
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.types import ASGIApp, Scope

from gateway import chat, event_stream, mcp_face, shelf, watching
from gateway.body import JsonRoute
from gateway.departure import unless_gone
from gateway.door import CLIENT_GONE, REFUSALS, SCHEMES, TIMED, Door, responding
from gateway.edge import Edge, Named, admit_origins, without_query
from gateway.event_stream import EventStream, wants_events
from gateway.jobs import routes as job_routes
from gateway.jobs.prefer import ACCEPTED, DEFERRED, deferral, located, superseding
from gateway.outcome import Mode
from gateway.schema import AnswerRequest, AnswerResponse, SearchRequest, SearchResponse
from gateway.web import files

_STREAMED: dict[str, Any] = {"content": {event_stream.MEDIA_TYPE: event_stream.PUBLISHED}}
_QUEUED: dict[str, Any] = {
    "model": AnswerResponse,
    "description": "queued",
    "headers": {"Location": {"schema": {"type": "string"}, "description": "where the job is"}},
}


class _App(FastAPI):
    def build_middleware_stack(self) -> ASGIApp:
        """Ours alone: the edge answers all that the framework's own layers would."""
        app: ASGIApp = AsyncExitStackMiddleware(self.router)
        for layer, args, options in reversed(self.user_middleware):
            app = layer(app, *args, **options)
        return app

    def openapi(self) -> dict[str, Any]:
        published = super().openapi()
        published["components"]["securitySchemes"] = SCHEMES
        return published


def web_app(door: Door, origins: Collection[str] = ()) -> ASGIApp:
    """The ASGI application: JSON routes, problems for every refusal, its own OpenAPI.

    `origins` are those of pages from elsewhere that may call it.
    """
    app = _App(
        title="Sluice",
        version="1",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        # Its own logs would hold what callers sent.
        telemetry={
            "operation_spans": False,
            "logs": False,
            "auto_configure": False,
            "exclude": _is_health,
        },
    )
    # The last one stands outermost: refusals can be read by pages, preflights have a name.
    app.add_middleware(Edge)
    if origins:
        admit_origins(app, origins)
    app.add_middleware(Named)
    for router in (
        _answers(door),
        _search(door),
        job_routes.router(door),
        shelf.router(door),
        watching.router(door),
        chat.router(door),
        mcp_face.router(door, origins),
    ):
        # An included router would look twice for each request's route.
        app.router.routes.extend(router.routes)
    files.install(app)
    return without_query(app)


def _is_health(scope: Scope) -> bool:
    return bool(scope["path"] == "/healthz")


def _answers(door: Door) -> APIRouter:
    router = APIRouter(route_class=JsonRoute)

    @router.post(
        "/v1/answers",
        response_model=AnswerResponse,
        responses={200: _STREAMED, ACCEPTED: _QUEUED, **REFUSALS},
        openapi_extra=DEFERRED,
    )
    async def answer(request: Request, body: AnswerRequest) -> Response:
        """Answer a question from the documents that the caller may read.

        With `Accept: text/event-stream` the answer is told while it comes about. The last event
        is `answer` or `error`; a stream that ends without one was interrupted, and its text is
        void. With `Prefer: respond-async` it is queued as a job, which no process can lose.
        """
        question = body.to_question()
        later = superseding(deferral(request.headers), body.supersedes)
        await door.enter(request.headers, door.answer_deadline)
        stand = partial(setattr, request.state, "standings")
        ask = partial(door.desk.ask, question, later, stand)
        if wants_events(request.headers.getlist("accept")):
            return EventStream(lambda tell: ask(tell=tell), request.state.request_id)
        found = await unless_gone(request.receive, ask())
        if found is None:
            return Response(status_code=CLIENT_GONE)
        content = AnswerResponse.of(found)
        queued = content.mode is Mode.QUEUED
        return located(responding(content, ACCEPTED if queued else 200), content)

    return router


def _search(door: Door) -> APIRouter:
    router = APIRouter(route_class=JsonRoute)

    @router.post(
        "/v1/search", response_model=SearchResponse, responses=REFUSALS, openapi_extra=TIMED
    )
    async def search(request: Request, body: SearchRequest) -> Response:
        """Find the passages that the caller may read and that bear on a question.

        No model is asked. It costs of the caller's allowance what a question costs.
        """
        question = body.to_question()
        await door.enter(request.headers, door.answer_deadline)
        stand = partial(setattr, request.state, "standings")
        finding = door.search.find(question, body.limit or 0, stand)
        found = await unless_gone(request.receive, finding)
        if found is None:
            return Response(status_code=CLIENT_GONE)
        return responding(SearchResponse.of(found))

    return router
