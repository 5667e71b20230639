"""python -m gateway.worker: jobs in, the stages behind, nothing served but health."""

from functools import partial

from chassis.errors import Unauthenticated
from chassis.health import Dependency
from chassis.identity import Caller, Minter, signing_key
from chassis.serve import run, serve
from chassis.settings import load
from gateway.jobs.leases import Leases
from gateway.pipeline import Pipeline
from gateway.stages import BATCH
from gateway.store import Store
from gateway.worker.queue import Queue
from gateway.worker.settings import WorkerSettings
from gateway.worker.work import Patience, Work

# Times a lease after which a delivery that came to nothing is repeated.
DELIVERY = 3


def main() -> None:
    settings = load(WorkerSettings)
    run("worker", settings, partial(process, settings))


async def process(settings: WorkerSettings) -> None:
    minter = Minter(signing_key(settings.internal_signing_key))
    pipeline = Pipeline.connect(settings, minter, BATCH)
    store = Store.connect(settings.jobs_redis_url, settings.jobs_decision_seconds)
    leases = Leases(store, settings.pace())
    patience = Patience(settings.job_attempt_seconds, settings.job_retry_seconds)
    work = Work(leases, pipeline.flow, patience)
    idle = DELIVERY * settings.job_lease_seconds
    queue = Queue(settings.jobs_redis_url, settings.job_concurrency, idle, work.perform)
    await serve(
        settings.port,
        settings,
        services=[],
        verify=nobody,
        limit=settings.job_attempt_seconds,
        dependencies=[*pipeline.parts(), Dependency("jobs", leases.check)],
        alongside=[partial(queue.serve, settings.grace_seconds), work.watch],
        close=[work.close, queue.close, pipeline.close, store.close],
    )


async def nobody(_: str) -> Caller:
    raise Unauthenticated("a worker serves nobody")


if __name__ == "__main__":
    main()
