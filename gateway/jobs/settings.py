"""What the gateway and the workers are told of jobs."""

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from chassis.settings import PREFIX
from gateway.jobs.ledger import Terms


class JobSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    jobs_redis_url: str = Field(
        "",
        description="Redis for jobs alone, with appendfsync always and noeviction; else no jobs",
        examples=["redis://jobs:6379/0"],
    )
    jobs_decision_seconds: float = Field(
        2, gt=0, le=10, description="most seconds to wait for the jobs' Redis", examples=["2"]
    )
    job_seconds: float = Field(
        3_600,
        gt=0,
        le=7 * 86_400,
        description="seconds after which a job expires; who asked is believed no longer either",
        examples=["3600"],
    )
    job_kept_seconds: float = Field(
        86_400,
        gt=0,
        le=30 * 86_400,
        description="seconds for which a job can be looked at once it has ended",
        examples=["86400"],
    )
    job_backlog: int = Field(
        1_000,
        ge=1,
        description="jobs that may wait or be in work at once, half of them of one tenant",
        examples=["1000"],
    )
    job_backlog_seconds: float = Field(
        900,
        gt=0,
        description="seconds that a job may have to wait; one that would is not accepted",
        examples=["900"],
    )
    job_starts_per_minute: float = Field(
        120,
        gt=0,
        le=60_000,
        description="attempts that all workers together begin in a minute",
        examples=["120"],
    )

    @model_validator(mode="after")
    def _jobs_can_be_answered(self) -> "JobSettings":
        if self.job_backlog_seconds > self.job_seconds:
            raise ValueError(
                f"{PREFIX}JOB_BACKLOG_SECONDS is above {PREFIX}JOB_SECONDS: jobs would be accepted"
                " that expire before their turn"
            )
        return self

    def job_terms(self) -> Terms:
        return Terms(
            self.job_seconds,
            self.job_kept_seconds,
            self.job_backlog,
            self.job_backlog_seconds,
            self.job_starts_per_minute,
        )
