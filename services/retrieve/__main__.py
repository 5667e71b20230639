"""The retrieve stage: a question in, the caller's passages out."""

from functools import partial

from chassis.health import Dependency
from chassis.identity import Caller, Verifier, verifying_key
from chassis.serve import Service, run, serve
from chassis.settings import load
from corpus import collection, tokens
from providers.embeddings import EmbeddingClient
from services.retrieve.embed import Embeddings
from services.retrieve.index import Index
from services.retrieve.search import Search
from services.retrieve.server import RetrieveServicer
from services.retrieve.settings import RetrieveSettings
from sluice.retrieve.v1.retrieve_pb2_grpc import add_RetrieveServiceServicer_to_server

LIMIT = 30  # seconds


def main() -> None:
    settings = load(RetrieveSettings)
    run("retrieve", settings, partial(process, settings))


async def process(settings: RetrieveSettings) -> None:
    profile = settings.profile()
    bucket = settings.bucket("embeddings", settings.embedding_limits())
    embedder = EmbeddingClient(
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_key(),
        model=settings.embedding_model or profile.model,
        dimensions=profile.dimensions,
        bucket=bucket,
        attempt_timeout=settings.embedding_attempt_seconds,
        interactive_wait=settings.interactive_wait_seconds,
    )
    qdrant = collection.connect(settings.qdrant_url, settings.qdrant_api_key.get_secret_value())
    index = Index(qdrant, settings.collection, profile)
    search = Search(
        index=index,
        embeddings=Embeddings(embedder, settings.remembered_questions),
        profile=profile,
        count=tokens.counter(profile),
        ranking=settings.ranking,
    )
    add = partial(
        add_RetrieveServiceServicer_to_server, RetrieveServicer(search, settings.defaults)
    )
    verifier = Verifier(verifying_key(settings.internal_verify_key), "retrieve")

    async def verify(token: str) -> Caller:
        return verifier.verify(token)

    await serve(
        settings.port,
        settings,
        services=[Service("sluice.retrieve.v1.RetrieveService", add)],
        verify=verify,
        limit=LIMIT,
        dependencies=[
            Dependency("index", index.check),
            Dependency("capacity", bucket.check),
            Dependency("embeddings", embedder.reachable, needed=False),
        ],
        close=[embedder.close, bucket.close, index.close],
    )


if __name__ == "__main__":
    main()
