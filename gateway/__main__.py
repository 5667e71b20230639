"""python -m gateway: HTTP and gRPC in, the stages behind."""

from functools import partial

from capacity import SharedBucket
from chassis.channels import connect
from chassis.health import Dependency
from chassis.identity import Caller, Minter, signing_key
from chassis.serve import Service, run, serve
from chassis.settings import load
from gateway.admission import Admission, Room, Waiting
from gateway.allowance import SharedAllowance
from gateway.connection import Bounds
from gateway.documents import Documents
from gateway.door import Door
from gateway.flow import Flow
from gateway.levels import Levels
from gateway.line import ANY_FIELD, Line
from gateway.listen import bind, serve_http
from gateway.places import SharedPlaces
from gateway.readiness import Parts
from gateway.routes import web_app
from gateway.search import Search
from gateway.server import AnswerService
from gateway.settings import GatewaySettings
from gateway.stages import Assemble, Generate, Ingest, Retrieve
from gateway.store import Store
from sluice.answer.v1.answer_pb2_grpc import add_AnswerServiceServicer_to_server

ANSWER = "sluice.answer.v1.AnswerService"
RETRIEVE = "sluice.retrieve.v1.RetrieveService"
ASSEMBLE = "sluice.assemble.v1.AssembleService"
GENERATE = "sluice.generate.v1.GenerateService"
INGEST = "sluice.ingest.v1.IngestService"


def main() -> None:
    settings = load(GatewaySettings)
    run("gateway", settings, partial(process, settings))


async def process(settings: GatewaySettings) -> None:
    listener = bind(settings.host, settings.http_port)
    minter = Minter(signing_key(settings.internal_signing_key))
    issuer = settings.trusted_issuer()

    to_retrieve = connect(settings.retrieve_target, service=RETRIEVE, idempotent=True)
    to_assemble = connect(settings.assemble_target, service=ASSEMBLE, idempotent=True)
    to_generate = connect(settings.generate_target, service=GENERATE, idempotent=False)
    to_ingest = connect(settings.ingest_target, service=INGEST, idempotent=False)
    retrieve = Line("retrieve", to_retrieve, minter, settings.retrieve_seconds)
    assemble = Line("assemble", to_assemble, minter, settings.assemble_seconds)
    generate = Line("generate", to_generate, minter, settings.generate_seconds)
    ingest = Line("ingest", to_ingest, minter, settings.ingest_seconds, ANY_FIELD)

    retrieval = Retrieve(retrieve)
    flow = Flow(retrieval, Assemble(assemble), Generate(generate))

    store = Store.connect(settings.redis_url, settings.admission_decision_seconds)
    processes = settings.max_processes
    allowance = SharedAllowance(store, settings.subject_quota(), settings.tenant_quota(), processes)
    places = SharedPlaces(
        store, settings.shared_max_in_flight, processes, settings.room_lease_seconds
    )
    waiting = Waiting(settings.admission_wait, settings.admission_waiters)
    room = Room(settings.max_in_flight, places, waiting)
    admission = Admission(allowance, room, flow)
    search = Search(admission.admitted, retrieval)
    levels = Levels(pools(settings), room, places, admission.refusals)

    parts = watched(retrieve, assemble, generate, ingest, allowance, *issuer.parts())
    door = Door(
        admission,
        search,
        issuer,
        parts,
        levels,
        settings.answer_deadline,
        Documents(Ingest(ingest)),
        settings.ingest_seconds,
        settings.document_bytes,
    )
    app = web_app(door, settings.cors_origins)
    bounds = Bounds(settings.max_connections)

    async def verify(token: str) -> Caller:
        return await issuer.caller(token)

    answers = partial(add_AnswerServiceServicer_to_server, AnswerService(admission))
    await serve(
        settings.port,
        settings,
        services=[Service(ANSWER, answers)],
        verify=verify,
        limit=settings.answer_deadline,
        dependencies=parts.watched(),
        alongside=[
            partial(serve_http, app, listener, bounds, settings.grace_seconds),
            *([levels.watch] if settings.metrics_port or settings.otlp_endpoint else []),
        ],
        close=[
            to_retrieve.close,
            to_assemble.close,
            to_generate.close,
            to_ingest.close,
            issuer.close,
            places.close,
            levels.close,
            store.close,
        ],
    )


def watched(
    retrieve: Line,
    assemble: Line,
    generate: Line,
    ingest: Line,
    allowance: SharedAllowance,
    *others: Dependency,
) -> Parts:
    """Without a model passages are still worth showing; without Redis a share is still granted.

    Questions need no document to come in.
    """
    return Parts(
        [
            retrieve.dependency(needed=True),
            assemble.dependency(needed=True),
            generate.dependency(needed=False),
            ingest.dependency(needed=False),
            Dependency("redis", allowance.check, needed=False),
            *others,
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
