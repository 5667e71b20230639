"""The routes of jobs. None of them takes a seat: they work while no question is admitted."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from gateway.door import REFUSALS, SIGNED, Door, responding
from gateway.jobs.schema import JobResponse

# Long enough for what they do; nobody waits here for an answer to be written.
SECONDS = 10.0

_TOLD: dict[str, Any] = {"responses": REFUSALS, "openapi_extra": SIGNED}

Id = Annotated[str, Path(json_schema_extra={"pattern": "^[0-9a-f]{32}$"})]


def router(door: Door) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/jobs/{job_id}", response_model=JobResponse, **_TOLD)
    async def look(request: Request, job_id: Id) -> Response:
        """Tell how far a job of the caller's is, and its answer by what they may read now."""
        await door.enter(request.headers, SECONDS)
        return responding(JobResponse.of(await door.desk.look(job_id)))

    @router.delete("/v1/jobs/{job_id}", response_model=JobResponse, **_TOLD)
    async def cancel(request: Request, job_id: Id) -> Response:
        """End a job of the caller's, if it has not ended yet, and tell how it is."""
        await door.enter(request.headers, SECONDS)
        return responding(JobResponse.of(await door.desk.cancel(job_id)))

    return router
