"""What HTTP callers send and get of jobs, as JSON."""

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from gateway.jobs.desk import SourceJob
from gateway.jobs.job import State
from gateway.schema import AnswerResponse


class JobResponse(BaseModel):
    """A question that was queued. Once it has ended it stays as it is."""

    job_id: str
    state: State = Field(description="done, failed, expired, cancelled and superseded are ends")
    accepted_at: datetime
    expires_at: datetime = Field(description="when it ends unless it has before")
    attempts: int = Field(description="that were begun")
    reason: str | None = Field(
        description="why it failed, or the last attempt did; stable word for programs"
    )
    superseded_by: str | None = Field(description="id of the job that took its place")
    answer: AnswerResponse | None = Field(
        description="what came of it, as far as the caller may still see it"
    )

    @classmethod
    def of(cls, job: SourceJob) -> "JobResponse":
        return cls(
            job_id=job.id,
            state=job.state,
            accepted_at=_moment(job.accepted),
            expires_at=_moment(job.expires),
            attempts=job.attempts,
            reason=job.reason or None,
            superseded_by=job.superseded_by or None,
            answer=None if job.answer is None else AnswerResponse.of(job.answer),
        )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
