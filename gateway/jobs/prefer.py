"""Whether an HTTP caller consents to an answer later: Prefer (RFC 7240) and Idempotency-Key."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Header, Response

from chassis.errors import InvalidInput
from gateway.jobs.job import KEY_CHARACTERS, Deferral
from gateway.schema import AnswerResponse

ASYNC, WAIT = "respond-async", "wait"
ACCEPTED = 202

_SECONDS = re.compile(r"[0-9]{1,9}")


# Asynchronous, since FastAPI takes a thread for what is not.
async def _deferral(
    prefer: Annotated[
        list[str] | None,
        Header(
            description=f"{ASYNC}: queue the question; with {WAIT}=SECONDS only if there is no"
            " answer in that time",
            examples=[[ASYNC], [f"{ASYNC}, {WAIT}=10"]],
        ),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Header(
            description=f"the caller's own name for a question to be queued, at most"
            f" {KEY_CHARACTERS} characters: the same one gives the same job",
            json_schema_extra={"pattern": f"^[!-~]{{0,{KEY_CHARACTERS}}}$"},
        ),
    ] = None,
) -> Deferral | None:
    preferences = dict(_preferences(prefer or ()))
    if ASYNC not in preferences:
        return None
    wait = preferences.get(WAIT, "")
    # A preference that cannot be met is none.
    seconds = float(wait) if _SECONDS.fullmatch(wait) else None
    return Deferral(seconds, idempotency_key or "")


Deferring = Annotated[Deferral | None, Depends(_deferral)]


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
