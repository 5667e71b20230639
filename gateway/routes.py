"""The HTTP face: what each address does, and in which order a question is admitted."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.types import ASGIApp, Scope

from chassis import deadlines, errors, identity
from chassis.deadlines import Deadline
from gateway import event_stream, problem
from gateway.admission import Admission
from gateway.body import JsonRoute
from gateway.departure import unless_gone
from gateway.edge import Edge, without_query
from gateway.event_stream import EventStream, wants_events
from gateway.identity import Issuer
from gateway.levels import Levels
from gateway.problem import Problem
from gateway.readiness import Parts
from gateway.schema import (
    AnswerRequest,
    AnswerResponse,
    CapacityResponse,
    HealthResponse,
    SearchRequest,
    SearchResponse,
)
from gateway.search import Search
from gateway.web import files
from sluice.evidence.v1.evidence_pb2 import Passage, Source

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
OPERATOR = "operator"
CLIENT_GONE = 499  # never seen by anybody: who left reads no response

_REFUSED: dict[str, Any] = {
    "description": "refused; the body says why",
    "content": {problem.MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
}
_REFUSALS: dict[int | str, dict[str, Any]] = {"4XX": _REFUSED, "5XX": _REFUSED}
_STREAMED: dict[str, Any] = {"content": {event_stream.MEDIA_TYPE: event_stream.PUBLISHED}}

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
Seconds = Annotated[
    str | None,
    Header(alias="Request-Timeout", description="seconds after which the answer is of no use"),
]


@dataclass(frozen=True, slots=True)
class Door:
    """What the routes need. `answer_deadline` in seconds caps what callers ask for."""

    admission: Admission[Passage, Source]
    search: Search[Passage]
    issuer: Issuer
    parts: Parts
    levels: Levels
    answer_deadline: float


def web_app(door: Door) -> ASGIApp:
    """The ASGI application: JSON routes, problems for every refusal, its own OpenAPI."""
    app = FastAPI(
        title="Sluice",
        version="1",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"operation_spans": False, "exclude": _is_health},
    )
    app.add_middleware(Edge)
    problem.install(app)
    app.include_router(_router(door))
    files.install(app)
    return without_query(app)


def _is_health(scope: Scope) -> bool:
    return bool(scope["path"] == "/healthz")


def _router(door: Door) -> APIRouter:
    router = APIRouter(route_class=JsonRoute)

    @router.post(
        "/v1/answers", response_model=AnswerResponse, responses={200: _STREAMED, **_REFUSALS}
    )
    async def answer(
        request: Request, body: AnswerRequest, bearer: Bearer, seconds: Seconds = None
    ) -> Response:
        """Answer a question from the documents that the caller may read.

        With `Accept: text/event-stream` the answer is told while it comes about. The last event
        is `answer` or `error`; a stream that ends without one was interrupted, and its text is
        void.
        """
        question = body.to_question()
        deadlines.enter(_deadline(seconds, door.answer_deadline))
        identity.enter(door.issuer.verify(_token(bearer)))
        ask = partial(door.admission.ask, question, partial(setattr, request.state, "standings"))
        if wants_events(request.headers.getlist("accept")):
            return EventStream(lambda tell: ask(tell=tell), request.state.request_id)
        found = await unless_gone(request.receive, ask())
        if found is None:
            return Response(status_code=CLIENT_GONE)
        return _json(AnswerResponse.of(found))

    @router.post("/v1/search", response_model=SearchResponse, responses=_REFUSALS)
    async def search(
        request: Request, body: SearchRequest, bearer: Bearer, seconds: Seconds = None
    ) -> Response:
        """Find the passages that the caller may read and that bear on a question.

        No model is asked. It costs of the caller's allowance what a question costs.
        """
        question = body.to_question()
        deadlines.enter(_deadline(seconds, door.answer_deadline))
        identity.enter(door.issuer.verify(_token(bearer)))
        stand = partial(setattr, request.state, "standings")
        finding = door.search.find(question, body.limit or 0, stand)
        found = await unless_gone(request.receive, finding)
        if found is None:
            return Response(status_code=CLIENT_GONE)
        return _json(SearchResponse.of(found))

    @router.get("/v1/capacity", response_model=CapacityResponse, responses=_REFUSALS)
    async def capacity(bearer: Bearer) -> Response:
        """What is left of every allowance, for the role operator. Never refused for want of it."""
        if OPERATOR not in door.issuer.verify(_token(bearer)).roles:
            raise errors.Forbidden(f"this needs the role {OPERATOR}", reason="ROLE_MISSING")
        return _json(CapacityResponse.of(await door.levels.of_room(), await door.levels.of_pools()))

    @router.head("/healthz", include_in_schema=False)
    @router.get(
        "/healthz", response_model=HealthResponse, responses={503: {"model": HealthResponse}}
    )
    async def health() -> Response:
        """Whether this process takes questions. Costs nothing and is never refused."""
        down = door.parts.down()
        if not door.parts.ready:
            return _json(HealthResponse(status="unready", down=down), 503)
        return _json(HealthResponse(status="degraded" if down else "ok", down=down))

    return router


def _json(content: BaseModel, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(content.model_dump_json(), status, headers, "application/json")


def _token(bearer: HTTPAuthorizationCredentials | None) -> str:
    if bearer is None or not bearer.credentials:
        raise errors.Unauthenticated("no bearer token in the Authorization header")
    return bearer.credentials


def _deadline(asked: str | None, most: float) -> Deadline:
    if asked is None:
        return Deadline.after(most)
    if not _SECONDS.fullmatch(asked) or not float(asked):
        raise errors.InvalidInput("seconds above 0, such as 2.5", field="Request-Timeout")
    return Deadline.after(min(float(asked), most))
