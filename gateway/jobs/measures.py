"""What is told of jobs to whoever collects metrics: nothing without an SDK."""

from opentelemetry import metrics

_meter = metrics.get_meter("sluice.jobs")
_oldest = _meter.create_gauge(
    "sluice.jobs.oldest_age", "s", "time that the oldest job which has not ended has waited"
)
_open = _meter.create_gauge("sluice.jobs.open", "{job}", "jobs that have not ended")
_attempts = _meter.create_counter(
    "sluice.jobs.attempts",
    "{attempt}",
    "attempts by how they ended: done, failed, postponed, or lost to somebody else's word",
)


def backlog(number: int, oldest: float) -> None:
    """As every gateway sees it, also while no worker runs."""
    _open.set(number)
    _oldest.set(oldest)


def attempted(ending: str) -> None:
    _attempts.add(1, {"ending": ending})
