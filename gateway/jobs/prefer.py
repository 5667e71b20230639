"""Whether an HTTP caller consents to an answer later: Prefer (RFC 7240) and Idempotency-Key."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from fastapi import Response
from starlette.datastructures import Headers

from chassis.errors import InvalidInput
from gateway.door import TIMED
from gateway.jobs.job import KEY_CHARACTERS, Deferral
from gateway.schema import AnswerResponse

ASYNC, WAIT = "respond-async", "wait"
ACCEPTED = 202

_SECONDS = re.compile(r"[0-9]{1,9}")

# What a route says of the headers that are read here, and of the door's.
_READ: list[dict[str, Any]] = [
    {
        "name": "Prefer",
        "in": "header",
        "description": f"{ASYNC}: queue the question; with {WAIT}=SECONDS only if there is no"
        " answer in that time",
        "schema": {"type": "array", "items": {"type": "string"}},
        "examples": {
            "queued": {"value": [ASYNC]},
            "queued_if_it_takes_long": {"value": [ASYNC, f"{WAIT}=10"]},
        },
    },
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "the caller's own name for a question to be queued, at most"
        f" {KEY_CHARACTERS} characters: the same one gives the same job",
        "schema": {"type": "string", "pattern": f"^[!-~]{{0,{KEY_CHARACTERS}}}$"},
    },
]
DEFERRED: dict[str, Any] = {**TIMED, "parameters": [*TIMED["parameters"], *_READ]}


def deferral(headers: Headers) -> Deferral | None:
    """None where the caller waits for the answer. Raises InvalidInput for a key that is none."""
    preferences = dict(_preferences(headers.getlist("prefer")))
    if ASYNC not in preferences:
        return None
    wait = preferences.get(WAIT, "")
    # A preference that cannot be met is none.
    seconds = float(wait) if _SECONDS.fullmatch(wait) else None
    return Deferral(seconds, headers.get("idempotency-key", ""))


def _preferences(headers: Sequence[str]) -> Iterator[tuple[str, str]]:
    for preference in ",".join(headers).split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        yield name.strip().lower(), value.strip().strip('"')


def superseding(deferral: Deferral | None, job_id: str) -> Deferral | None:
    """The same, in the place of an earlier job. Raises InvalidInput where none is to be queued."""
    if not job_id:
        return deferral
    if deferral is None:
        raise InvalidInput(f"this needs Prefer: {ASYNC}", field="supersedes")
    return replace(deferral, supersedes=job_id)


def located(response: Response, answer: AnswerResponse) -> Response:
    """The response, which says where the job is if the question was queued."""
    if answer.job_id:
        response.headers["Location"] = f"/v1/jobs/{answer.job_id}"
        response.headers["Preference-Applied"] = ASYNC
    return response
