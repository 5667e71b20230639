"""What a worker is told."""

from pydantic import Field, model_validator

from chassis.settings import PREFIX
from gateway.jobs.leases import Pace
from gateway.jobs.settings import JobSettings
from gateway.pipeline_settings import PipelineSettings


class WorkerSettings(PipelineSettings, JobSettings):
    port: int = Field(50055, ge=1, le=65535, description="port for health", examples=["50055"])

    job_concurrency: int = Field(
        4, ge=1, le=1_000, description="jobs in work at once in this process", examples=["4"]
    )
    job_attempts: int = Field(
        5, ge=1, le=100, description="attempts after which a job has failed", examples=["5"]
    )
    job_attempt_seconds: float = Field(
        120, gt=0, le=600, description="most seconds that one attempt may take", examples=["120"]
    )
    job_retry_seconds: float = Field(
        10,
        gt=0,
        le=3_600,
        description="seconds before a second attempt; four times as many before each further one",
        examples=["10"],
    )
    job_lease_seconds: float = Field(
        10,
        ge=0.5,
        le=600,
        description="seconds after which a dead worker's jobs are others' to attempt",
        examples=["10"],
    )
    job_ramp_seconds: float = Field(
        60,
        gt=0,
        le=3_600,
        description="seconds after an outage until attempts begin as often as before",
        examples=["60"],
    )

    @model_validator(mode="after")
    def _jobs_are_somewhere(self) -> "WorkerSettings":
        if not self.jobs_redis_url:
            raise ValueError(
                f"{PREFIX}JOBS_REDIS_URL is missing: set it to the Redis of the jobs,"
                " such as redis://jobs:6379/0"
            )
        return self

    def pace(self) -> Pace:
        return Pace(
            self.job_lease_seconds,
            self.job_attempts,
            self.job_starts_per_minute,
            self.job_ramp_seconds,
        )
