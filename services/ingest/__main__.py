"""The ingest stage: documents in, live passages out."""

import asyncio
from functools import partial

from chassis.health import Dependency
from chassis.identity import Caller, Verifier, verifying_key
from chassis.serve import Service, run, serve
from chassis.settings import load
from corpus import collection, tokens
from providers.embeddings import EmbeddingClient
from services.ingest import guard, lease
from services.ingest.chunk import Chunking
from services.ingest.embed import Batching
from services.ingest.index import Index
from services.ingest.lease import Leases
from services.ingest.library import Library
from services.ingest.prepare import Preparation
from services.ingest.server import IngestServicer
from services.ingest.settings import IngestSettings
from services.ingest.succession import Succession
from sluice.ingest.v1.ingest_pb2_grpc import add_IngestServiceServicer_to_server


def main() -> None:
    settings = load(IngestSettings)
    run("ingest", settings, partial(process, settings))


async def process(settings: IngestSettings) -> None:
    loading = asyncio.create_task(asyncio.to_thread(guard.load))
    profile = settings.profile()
    chunking = Chunking(
        profile,
        tokens.counter(profile),
        settings.budget,
        settings.chunk_overlap,
        rejecting=settings.oversized_blocks == "reject",
    )
    bucket = settings.bucket("embeddings", settings.embedding_limits())
    embedder = EmbeddingClient(
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_key(),
        model=settings.embedding_model or profile.model,
        dimensions=profile.dimensions,
        bucket=bucket,
        attempt_timeout=settings.embedding_attempt_seconds,
    )
    qdrant = collection.connect(settings.qdrant_url, settings.qdrant_api_key.get_secret_value())
    new_index = partial(Index, qdrant, settings.collection, profile, chunking.version)
    index = new_index(beside=settings.reindex)
    leases = Leases(lease.connect(settings.redis_url))
    library = Library(
        index=index,
        leases=leases,
        embedder=embedder,
        batching=Batching(
            inputs=settings.embedding_batch_inputs,
            tokens=settings.embedding_batch_tokens,
            input_limit=profile.input_limit,
        ),
        preparation=Preparation(chunking, settings.access, settings.mask_personal_data),
    )
    succession = Succession(new_index(), index, leases) if settings.reindex else None
    servicer = IngestServicer(library, settings.document_bytes, succession)
    verifier = Verifier(verifying_key(settings.internal_verify_key), "ingest")

    async def verify(token: str) -> Caller:
        return verifier.verify(token)

    await serve(
        settings.port,
        settings,
        services=[
            Service(
                "sluice.ingest.v1.IngestService",
                partial(add_IngestServiceServicer_to_server, servicer),
            )
        ],
        verify=verify,
        limit=settings.ingest_seconds,
        dependencies=[
            Dependency("index", index.ensure),
            Dependency("leases", leases.check),
            Dependency("embeddings", embedder.reachable, needed=False),
        ],
        close=[lambda: loading, embedder.close, bucket.close, leases.close, index.close],
    )


if __name__ == "__main__":
    main()
