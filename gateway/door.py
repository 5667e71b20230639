"""What stands at every route: who asks, for how long, and how it is answered or refused."""

import re
from dataclasses import dataclass
from typing import Any

from fastapi import Response
from pydantic import BaseModel
from starlette.datastructures import Headers

from chassis import deadlines, errors, identity
from chassis.deadlines import Deadline
from chassis.identity import Caller
from gateway import problem
from gateway.documents import Documents
from gateway.identity import Trusted
from gateway.jobs.desk import Desk
from gateway.levels import Levels
from gateway.problem import Problem
from gateway.readiness import Parts
from gateway.search import Search
from sluice.evidence.v1.evidence_pb2 import Passage
from sluice.ingest.v1 import ingest_pb2

Shelf = Documents[
    ingest_pb2.ListDocumentsResponse,
    ingest_pb2.PutDocumentResponse,
    ingest_pb2.PreviewDocumentResponse,
]

CLIENT_GONE = 499  # never seen by anybody: who left reads no response

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_REFUSED: dict[str, Any] = {
    "description": "refused; the body says why",
    "content": {problem.MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
}
REFUSALS: dict[int | str, dict[str, Any]] = {"4XX": _REFUSED, "5XX": _REFUSED}

# What a route says of the headers that the door reads. As parameters of the route's function they
# would cost a tenth of what it takes to refuse a question.
SCHEMES: dict[str, Any] = {"bearer": {"type": "http", "scheme": "bearer"}}
SIGNED: dict[str, Any] = {"security": [{name: []} for name in SCHEMES]}
TIMED: dict[str, Any] = {
    **SIGNED,
    "parameters": [
        {
            "name": "Request-Timeout",
            "in": "header",
            "description": "seconds after which the response is of no use",
            "schema": {"type": "string", "pattern": f"^{_SECONDS.pattern}$"},
        }
    ],
}


@dataclass(frozen=True, slots=True)
class Door:
    """What the routes need. Deadlines in seconds cap what callers ask for.

    `document_bytes` is the size of the largest document.
    """

    desk: Desk
    search: Search[Passage]
    issuer: Trusted
    parts: Parts
    levels: Levels
    answer_deadline: float
    documents: Shelf
    ingest_deadline: float
    document_bytes: int

    async def enter(self, headers: Headers, most: float) -> Caller:
        """The caller, whose request ends after the seconds they say, or `most` of them.

        Raises SluiceErrors.
        """
        deadlines.enter(_deadline(headers.get("request-timeout"), most))
        caller = await self.caller(headers)
        identity.enter(caller)
        return caller

    async def caller(self, headers: Headers) -> Caller:
        """Raises what the issuer raises, and Unauthenticated without a token."""
        return await self.issuer.caller(_token(headers))


def responding(content: BaseModel, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(content.model_dump_json(), status, headers, "application/json")


def needs(role: str, caller: Caller) -> None:
    """Raises Forbidden."""
    if role not in caller.roles:
        raise errors.Forbidden(f"this needs the role {role}", reason="ROLE_MISSING")


def _token(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise errors.Unauthenticated("no bearer token in the Authorization header")
    return token.strip()


def _deadline(asked: str | None, most: float) -> Deadline:
    if asked is None:
        return Deadline.after(most)
    if not _SECONDS.fullmatch(asked) or not float(asked):
        raise errors.InvalidInput("seconds above 0, such as 2.5", field="Request-Timeout")
    return Deadline.after(min(float(asked), most))
