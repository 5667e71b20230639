"""The gateway as the command line calls it: HTTP in, plain values or our errors out."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from chassis import errors
from cli.exits import Unreachable

# More than the gateway's own deadline, so that its worded outcome arrives.
READ_LIMIT = 130.0
# Longer than the gateway is ever silent while it streams, and than it may be told to take.
SILENCE_LIMIT = 30.0
STREAM_LIMIT = 660.0
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
    """What came of a question, `message` in plain words.

    `timings` in milliseconds by stage; `raw` is the whole response.
    """

    mode: str
    reason: str
    acceptance: str
    message: str
    text: str
    cited: tuple[str, ...]
    sources: tuple[Source, ...]
    timings: Mapping[str, float]
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """How far a queued question is. `raw` is the whole response."""

    state: str
    reason: str
    answer: Answer | None
    raw: Mapping[str, Any]


class Shown(Protocol):
    """Where the text of an answer appears before the answer is whole."""

    def add(self, text: str) -> None: ...

    def withdraw(self, reason: str) -> None:
        """What was added does not hold."""


async def ask(url: str, token: str, question: str, locale: str = "") -> Answer:
    """The gateway's answer. Raises SluiceErrors, Unreachable when nothing listens at the URL."""
    body = {"question": question, "locale": locale}
    return _answer(await _call(url, token, "POST", "/v1/answers", limit=READ_LIMIT, body=body))


async def queue(url: str, token: str, question: str) -> Answer:
    """That the question is queued; `raw` has the job's id. Raises as `ask`."""
    request = Request("POST", "/v1/answers", {"question": question}, prefer="respond-async")
    async with _replied(url, token, request, LEVELS_LIMIT) as reply:
        return _answer(json.loads(await reply.aread()))


async def search(url: str, token: str, question: str, limit: int | None) -> Mapping[str, Any]:
    """The passages as the gateway says them, at most `limit` if that is given. Raises as `ask`."""
    body = {"question": question, "limit": limit}
    return await _call(url, token, "POST", "/v1/search", limit=READ_LIMIT, body=body)


async def job(url: str, token: str, job_id: str, *, cancel: bool = False) -> Job:
    """A queued question, which ends first if `cancel`. Raises as `ask`."""
    method, path = "DELETE" if cancel else "GET", f"/v1/jobs/{quote(job_id, safe='')}"
    said = await _call(url, token, method, path, limit=LEVELS_LIMIT)
    answer = None if said["answer"] is None else _answer(said["answer"])
    return Job(said["state"], said["reason"] or "", answer, said)


async def stream(url: str, token: str, question: str, shown: Shown) -> Answer:
    """The same answer; its text is `shown` as it is released. Raises as `ask`.

    What was shown is void unless this returns.
    """
    request = Request("POST", "/v1/answers", {"question": question}, accept="text/event-stream")
    async with _replied(url, token, request, SILENCE_LIMIT) as reply, asyncio.timeout(STREAM_LIMIT):
        async for name, content in _events(reply.aiter_lines()):
            match name:
                case "delta":
                    shown.add(content["text"])
                case "retract":
                    shown.withdraw(content["reason"])
                case "answer":
                    return _answer(content)
                case "error":
                    raise _refusal(content, content["status"])
    raise errors.Unavailable(f"{url} broke off before the answer was whole", reason="STREAM_CUT")


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    """Name and content of each event. One that the connection's end cuts is none."""
    name, data = "", list[str]()
    async for line in lines:
        field, _, value = line.partition(":")
        match field:
            case "event":
                name = value.removeprefix(" ")
            case "data":
                data.append(value.removeprefix(" "))
            case "" if not line:
                if data:
                    yield name, json.loads("\n".join(data))
                name, data = "", []


async def capacity(url: str, token: str) -> Mapping[str, Any]:
    """What is left of every allowance, as the gateway says it. Raises as `ask`."""
    return await _call(url, token, "GET", "/v1/capacity", limit=LEVELS_LIMIT)


async def _call(  # noqa: PLR0913 - a request's parts
    url: str, token: str, method: str, path: str, *, limit: float, body: object = None
) -> Mapping[str, Any]:
    async with _replied(url, token, Request(method, path, body), limit) as reply:
        said: Mapping[str, Any] = json.loads(await reply.aread())
        return said


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: object = None
    accept: str = "application/json"
    prefer: str = ""


@asynccontextmanager
async def _replied(
    url: str, token: str, request: Request, limit: float
) -> AsyncIterator[httpx.Response]:
    """A reply that is no refusal, to be read in the block. `limit` is for each piece of it."""
    headers = {"Authorization": f"Bearer {token}", "Accept": request.accept}
    if request.prefer:
        headers["Prefer"] = request.prefer
    limits = httpx.Timeout(limit, connect=CONNECT_LIMIT)
    address = f"{url}{request.path}"
    try:
        async with (
            httpx.AsyncClient(timeout=limits, trust_env=False) as client,
            client.stream(request.method, address, json=request.body, headers=headers) as reply,
        ):
            if not reply.is_success:
                raise await _refused(reply)
            yield reply
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
        raise Unreachable(url.removeprefix("http://")) from error
    except (httpx.TimeoutException, TimeoutError) as error:
        raise errors.DeadlineExceeded(f"{url} did not answer within {limit:g} s") from error
    except httpx.HTTPError as error:
        raise errors.Unavailable(f"{url} closed the connection: {type(error).__name__}") from error


def _answer(fields: Mapping[str, Any]) -> Answer:
    timings = {name: spent for name, spent in fields["timings"].items() if spent is not None}
    return Answer(
        mode=fields["mode"],
        reason=fields["reason"],
        acceptance=fields["acceptance"] or "",
        message=fields["message"],
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


async def _refused(reply: httpx.Response) -> errors.SluiceError:
    try:
        problem = json.loads(await reply.aread())
    except ValueError:
        problem = {}
    said = f"{reply.url} answered {reply.status_code}"
    return _refusal({"detail": said, **problem}, reply.status_code)


def _refusal(problem: Mapping[str, Any], status: int) -> errors.SluiceError:
    message, reason = problem["detail"], problem.get("reason", "")
    kind = _KINDS.get(status)
    if kind is not None:
        return kind(message, reason=reason, retry_after=problem.get("retry_after"))
    if httpx.codes.is_client_error(status):
        return errors.InvalidInput(message, field=problem.get("field") or "", reason=reason)
    return errors.Internal(message, reason=reason)
