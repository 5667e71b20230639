"""What stands at every route: who asks, for how long, and how it is answered or refused."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

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

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
Seconds = Annotated[
    str | None,
    Header(
        alias="Request-Timeout",
        description="seconds after which the response is of no use",
        json_schema_extra={"pattern": f"^{_SECONDS.pattern}$"},
    ),
]


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

    async def enter(self, bearer: Bearer, seconds: str | None, most: float) -> Caller:
        """The caller, whose request ends after `seconds` or `most` of them. Raises SluiceErrors."""
        deadlines.enter(_deadline(seconds, most))
        caller = await self.caller(bearer)
        identity.enter(caller)
        return caller

    async def caller(self, bearer: Bearer) -> Caller:
        """Raises what the issuer raises, and Unauthenticated without a token."""
        return await self.issuer.caller(_token(bearer))


def responding(content: BaseModel, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(content.model_dump_json(), status, headers, "application/json")


def needs(role: str, caller: Caller) -> None:
    """Raises Forbidden."""
    if role not in caller.roles:
        raise errors.Forbidden(f"this needs the role {role}", reason="ROLE_MISSING")


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
