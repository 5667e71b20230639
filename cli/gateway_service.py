"""The gateway as the command line calls it: HTTP in, plain values or our errors out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from chassis import errors
from cli.exits import Unreachable

# More than the gateway's own deadline, so that its worded outcome arrives.
READ_LIMIT = 130.0
CONNECT_LIMIT = 3.0
LEVELS_LIMIT = 5.0

_KINDS: Mapping[int, type[errors.SluiceError]] = {
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    429: errors.Exhausted,
    503: errors.Unavailable,
    504: errors.DeadlineExceeded,
}


@dataclass(frozen=True, slots=True)
class Source:
    """A source that the answer cites, or that is shown in an answer's stead."""

    label: str
    document_id: str
    title: str
    version: str
    heading_path: tuple[str, ...]
    included_text: str
    score: float
    uri: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question. `timings` in milliseconds by stage; `raw` is the whole response."""

    mode: str
    reason: str
    acceptance: str
    text: str
    cited: tuple[str, ...]
    sources: tuple[Source, ...]
    timings: Mapping[str, float]
    raw: Mapping[str, Any]


async def ask(url: str, token: str, question: str, locale: str = "") -> Answer:
    """The gateway's answer. Raises SluiceErrors, Unreachable when nothing listens at the URL."""
    body = {"question": question, "locale": locale}
    return _answer(await _call(url, token, "POST", "/v1/answers", limit=READ_LIMIT, body=body))


async def capacity(url: str, token: str) -> Mapping[str, Any]:
    """What is left of every allowance, as the gateway says it. Raises as `ask`."""
    return await _call(url, token, "GET", "/v1/capacity", limit=LEVELS_LIMIT)


async def _call(  # noqa: PLR0913 - a request's parts
    url: str, token: str, method: str, path: str, *, limit: float, body: object = None
) -> Mapping[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    limits = httpx.Timeout(limit, connect=CONNECT_LIMIT)
    try:
        async with httpx.AsyncClient(timeout=limits, trust_env=False) as client:
            reply = await client.request(method, f"{url}{path}", json=body, headers=headers)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
        raise Unreachable(url.removeprefix("http://")) from error
    except httpx.TimeoutException as error:
        raise errors.DeadlineExceeded(f"{url} did not answer within {limit:g} s") from error
    except httpx.HTTPError as error:
        raise errors.Unavailable(f"{url} closed the connection: {type(error).__name__}") from error
    if reply.status_code != httpx.codes.OK:
        raise _refusal(reply)
    said: Mapping[str, Any] = reply.json()
    return said


def _answer(fields: Mapping[str, Any]) -> Answer:
    timings = {name: spent for name, spent in fields["timings"].items() if spent is not None}
    return Answer(
        mode=fields["mode"],
        reason=fields["reason"],
        acceptance=fields["acceptance"] or "",
        text=fields["text"],
        cited=tuple(dict.fromkeys(mark["label"] for mark in fields["citations"])),
        sources=tuple(_source(source) for source in fields["sources"]),
        timings=timings,
        raw=fields,
    )


def _source(fields: Mapping[str, Any]) -> Source:
    return Source(
        label=fields["label"],
        document_id=fields["document_id"],
        title=fields["title"],
        version=fields["version"],
        heading_path=tuple(fields["heading_path"]),
        included_text=fields["included_text"],
        score=fields["score"],
        uri=fields["uri"],
    )


def _refusal(reply: httpx.Response) -> errors.SluiceError:
    try:
        problem = reply.json()
    except ValueError:
        problem = {}
    message = problem.get("detail") or f"{reply.url} answered {reply.status_code}"
    reason = problem.get("reason", "")
    kind = _KINDS.get(reply.status_code)
    if kind is not None:
        return kind(message, reason=reason, retry_after=problem.get("retry_after"))
    if httpx.codes.is_client_error(reply.status_code):
        return errors.InvalidInput(message, field=problem.get("field") or "", reason=reason)
    return errors.Internal(message, reason=reason)
