"""python -m gateway: HTTP and gRPC in, the stages behind."""

from functools import partial

from capacity import SharedBucket
from chassis.channels import connect
from chassis.health import Dependency
from chassis.identity import Minter, signing_key
from chassis.serve import Service, run, serve
from chassis.settings import load
from gateway.admission import Admission, Room
from gateway.allowance import SharedAllowance
from gateway.documents import Documents
from gateway.door import Door
from gateway.identity import Trusted
from gateway.jobs.desk import Desk
from gateway.jobs.ledger import Ledger
from gateway.levels import Levels
from gateway.line import ANY_FIELD, Line
from gateway.listen import bind, serve_http
from gateway.pipeline import Pipeline
from gateway.places import SharedPlaces
from gateway.readiness import Parts
from gateway.routes import web_app
from gateway.search import Search
from gateway.server import AnswerService
from gateway.settings import GatewaySettings
from gateway.stages import Ingest
from gateway.store import Store
from sluice.answer.v1.answer_pb2_grpc import add_AnswerServiceServicer_to_server

ANSWER = "sluice.answer.v1.AnswerService"
INGEST = "sluice.ingest.v1.IngestService"


def main() -> None:
    settings = load(GatewaySettings)
    run("gateway", settings, partial(process, settings))


async def process(settings: GatewaySettings) -> None:
    listener = bind(settings.host, settings.http_port)
    issuer = settings.trusted_issuer()
    minter = Minter(signing_key(settings.internal_signing_key))
    pipeline = Pipeline.connect(settings, minter)
    ingest = line_to_ingest(settings, minter)
    store = Store.connect(settings.redis_url, settings.admission_decision_seconds)
    allowance, places = shared(settings, store)
    room = Room(settings.max_in_flight, places, settings.waiting())
    admission = Admission(allowance, room, pipeline.flow)
    levels = Levels(pools(settings), room, places, admission.refusals)
    ledger = jobs(settings) if settings.jobs_redis_url else None
    desk = Desk(admission, pipeline.flow, ledger)

    parts = watched(pipeline, ingest, allowance, ledger, issuer)
    door = Door(
        desk,
        Search(admission.admitted, pipeline.retrieval),
        issuer,
        parts,
        levels,
        settings.answer_deadline,
        Documents(Ingest(ingest)),
        settings.ingest_seconds,
        settings.document_bytes,
    )
    http = partial(serve_http, web_app(door, settings.cors_origins), listener, settings.bounds())
    add = partial(add_AnswerServiceServicer_to_server, AnswerService(desk))
    await serve(
        settings.port,
        settings,
        services=[Service(ANSWER, add)],
        verify=issuer.caller,
        limit=settings.answer_deadline,
        dependencies=parts.watched(),
        alongside=[
            partial(http, settings.grace_seconds),
            *([levels.watch] if settings.metrics_port or settings.otlp_endpoint else []),
        ],
        close=[
            pipeline.close,
            ingest.channel.close,
            issuer.close,
            places.close,
            levels.close,
            store.close,
            *([ledger.close] if ledger else []),
        ],
    )


def line_to_ingest(settings: GatewaySettings, minter: Minter) -> Line:
    channel = connect(
        settings.ingest_target,
        service=INGEST,
        idempotent=False,
        certificates=settings.certificates,
    )
    return Line("ingest", channel, minter, settings.ingest_seconds, ANY_FIELD)


def shared(settings: GatewaySettings, store: Store) -> tuple[SharedAllowance, SharedPlaces]:
    """What all gateways divide among them."""
    processes = settings.max_processes
    allowance = SharedAllowance(store, settings.subject_quota(), settings.tenant_quota(), processes)
    seats, lease = settings.shared_max_in_flight, settings.room_lease_seconds
    return allowance, SharedPlaces(store, seats, processes, lease)


def jobs(settings: GatewaySettings) -> Ledger:
    store = Store.connect(settings.jobs_redis_url, settings.jobs_decision_seconds)
    return Ledger(store, settings.job_terms())


def watched(
    pipeline: Pipeline,
    ingest: Line,
    allowance: SharedAllowance,
    ledger: Ledger | None,
    issuer: Trusted,
) -> Parts:
    """Questions need no document to come in; without Redis a share is still granted."""
    return Parts(
        [
            *pipeline.parts(),
            ingest.dependency(needed=False),
            Dependency("redis", allowance.check, needed=False),
            *([Dependency("jobs", ledger.check, needed=False)] if ledger else []),
            *issuer.parts(),
        ]
    )


def pools(settings: GatewaySettings) -> dict[str, SharedBucket]:
    """The provider's allowances, which the gateway only looks at."""
    connected = partial(
        SharedBucket.connect,
        settings.redis_url,
        local_share=settings.local_share,
        max_processes=settings.max_processes,
        ramp_seconds=settings.cooldown_ramp_seconds,
    )
    limits = {"answers": settings.answer_limits(), "embeddings": settings.embedding_limits()}
    return {name: connected(name, granted) for name, granted in limits.items()}


if __name__ == "__main__":
    main()
