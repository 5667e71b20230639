"""Refusals as RFC 9457 problems: our words, a reason for programs, nothing from upstream."""

import math
from collections.abc import Mapping
from http import HTTPStatus

import structlog
from fastapi import Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from pydantic import Field as Element
from starlette.exceptions import HTTPException

from chassis import errors
from chassis.errors import SluiceError
from gateway.quota import AllowanceSpent

MEDIA_TYPE = "application/problem+json"
FIELD_CHARACTERS = 256

STATUS: Mapping[type[SluiceError], HTTPStatus] = {
    errors.InvalidInput: HTTPStatus.BAD_REQUEST,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.ContractMismatch: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Exhausted: HTTPStatus.SERVICE_UNAVAILABLE,
    AllowanceSpent: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DeadlineExceeded: HTTPStatus.GATEWAY_TIMEOUT,
    errors.DataViolation: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.Internal: HTTPStatus.INTERNAL_SERVER_ERROR,
}

# What the web framework refuses before our own rules see it.
_FRAMEWORK: Mapping[int, tuple[str, str]] = {
    400: ("MALFORMED", "the body is not well-formed JSON"),
    404: ("NOT_FOUND", "there is nothing at this address"),
    405: ("METHOD_NOT_ALLOWED", "this address does not know the method"),
    408: ("BODY_TOO_SLOW", "the body did not arrive in time"),
    413: ("BODY_TOO_LARGE", "the body is too large"),
    415: ("UNSUPPORTED_MEDIA_TYPE", "the body has to be plain application/json"),
}

# What is refused on purpose. Anything else is a bug of ours.
REFUSED = (SluiceError, RequestValidationError, HTTPException)

log = structlog.get_logger()


class Problem(BaseModel):
    """Why a request was refused."""

    type: str = Element("about:blank", description="always about:blank: read the reason instead")
    title: str = Element(description="the status in words")
    status: int = Element(description="the HTTP status")
    detail: str = Element(description="what was wrong this time")
    reason: str = Element(description="stable word for programs, UPPER_SNAKE_CASE")
    field: str | None = Element(None, description="the offending field of the request")
    retry_after: float | None = Element(None, description="seconds after which a retry can help")
    request_id: str = Element(description="id of the request, also in the logs")


def refusal(request_id: str, error: Exception) -> Response:
    """The response that says `error`; anything unknown is said to be ours."""
    problem = problem_of(request_id, error)
    content = problem.model_dump_json(exclude_none=True)
    return Response(content, problem.status, headers_of(error), MEDIA_TYPE)


def problem_of(request_id: str, error: Exception) -> Problem:
    """What is said of `error`, which is logged."""
    match error:
        case SluiceError():
            problem = _sluice(request_id, error)
        case RequestValidationError():
            problem = _sluice(request_id, _validation(error))
        case HTTPException():
            problem = _framework(request_id, error)
        case _:
            problem = _sluice(request_id, errors.Internal("internal error"))
    log.info("request_refused", status=problem.status, reason=problem.reason)
    return problem


def headers_of(error: Exception) -> Mapping[str, str]:
    """What a refusal says in its headers, whatever shape its body has."""
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        headers.update(error.headers or {})
    if isinstance(error, errors.Unauthenticated):
        sent = error.reason != errors.Unauthenticated.default_reason
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"' if sent else "Bearer"
    if isinstance(error, errors.Forbidden):
        headers["WWW-Authenticate"] = 'Bearer error="insufficient_scope"'
    if isinstance(error, SluiceError) and error.retry_after is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after))
    return headers


def status_of(error: SluiceError) -> HTTPStatus:
    """HTTP status of the nearest class in the table."""
    found = (STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def _sluice(request_id: str, error: SluiceError) -> Problem:
    status = status_of(error)
    return Problem(
        title=status.phrase,
        status=status,
        detail=error.message,
        reason=error.reason,
        field=(error.field or None) if isinstance(error, errors.InvalidInput) else None,
        retry_after=error.retry_after,
        request_id=request_id,
    )


def _validation(error: RequestValidationError) -> errors.InvalidInput:
    """The first complaint, without the value: it may be the caller's text."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        _, text = _FRAMEWORK[400]
        return errors.InvalidInput(text, field="", reason="MALFORMED")
    return errors.InvalidInput(first["msg"], field=_field(first["loc"][1:]))


def _field(path: tuple[int | str, ...]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    name = "".join(parts).removeprefix(".")[:FIELD_CHARACTERS]
    return name.encode(errors="replace").decode()  # a lone surrogate cannot be sent


def _framework(request_id: str, error: HTTPException) -> Problem:
    phrase = HTTPStatus(error.status_code).phrase
    reason, text = _FRAMEWORK.get(error.status_code, ("REFUSED", phrase.lower()))
    return Problem(
        title=phrase, status=error.status_code, detail=text, reason=reason, request_id=request_id
    )
