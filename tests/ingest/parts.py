"""What publishing needs, as real processes, and an embedder that costs nothing."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from qdrant_client import AsyncQdrantClient, models

from bench.parts.embeddings import Embeddings
from capacity import Workload
from chassis.identity import AccessLevel
from corpus import bm25, collection, tokens
from corpus.epochs import read
from corpus.points import State, StoredPassage
from corpus.profile import profile
from corpus.qdrant import Qdrant
from corpus.scope import Scope
from services.ingest import lease
from services.ingest.chunk import Chunking
from services.ingest.embed import Batching
from services.ingest.index import Index
from services.ingest.lease import Leases
from services.ingest.library import Library
from services.ingest.prepare import Preparation
from tests.corpus.payloads import passage_in
from tests.stages import START_SECONDS

PROFILE = profile("multilingual-e5-small")
CHUNKING = Chunking(PROFILE, tokens.counter(PROFILE), budget=128, overlap=1)
# Else gRPC looks at longer and longer intervals for a process that still starts.
RECONNECTING = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 200),
]


@dataclass
class Part:
    """A part of the suite as a process of the test's own, on `port` of this machine."""

    module: str
    port: int
    env: dict[str, str]
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.spawn()
        self.wait_until_ready()

    def spawn(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module],
            env={**os.environ, "SLUICE_ENV": "development", **self.env},
            stderr=subprocess.DEVNULL,
        )

    def wait_until_ready(self, name: str = "readiness") -> None:
        with grpc.insecure_channel(f"127.0.0.1:{self.port}", RECONNECTING) as channel:
            request = health_pb2.HealthCheckRequest(service=name)
            stub = health_pb2_grpc.HealthStub(channel)
            for reply in stub.Watch(request, timeout=START_SECONDS, wait_for_ready=True):
                if reply.status == health_pb2.HealthCheckResponse.SERVING:
                    return
        raise AssertionError(f"{self.module} ended its health stream")

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def node(folder: Path, port: int) -> Part:
    """The local Qdrant node."""
    return Part(
        "local.qdrant_node",
        port,
        {"SLUICE_QDRANT_DATA": str(folder), "SLUICE_QDRANT_PORT": str(port)},
    )


def embedding_model(port: int) -> Part:
    """The bundled embedding model behind its endpoint."""
    return Part("local.models", port, {"SLUICE_MODELS_PORT": str(port), "OMP_NUM_THREADS": "1"})


@asynccontextmanager
async def scripted_model(rate: float) -> AsyncIterator[str]:
    """URL of an embedding model that answers so many texts a second, until its callers are gone."""
    model, served = Embeddings(rate), list[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.ensure_future(model.connected(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await asyncio.gather(*served)


def ingest(port: int, qdrant_url: str, redis_url: str, models_url: str, **env: str) -> Part:
    """The stage itself."""
    return Part(
        "services.ingest",
        port,
        {
            "SLUICE_PORT": str(port),
            "SLUICE_QDRANT_URL": qdrant_url,
            "SLUICE_REDIS_URL": redis_url,
            "SLUICE_EMBEDDING_BASE_URL": f"{models_url}/v1",
            **env,
        },
    )


@dataclass
class Unit:
    """Gives every text the same vector each time, and counts what it was asked."""

    calls: int = 0
    inputs: list[str] = field(default_factory=list)

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        self.calls += 1
        self.inputs += inputs
        return [_direction(text) for text in inputs]


def _direction(text: str) -> list[float]:
    digest = hashlib.sha384(text.encode()).digest()
    return [byte / 255 + 0.01 for byte in digest * (PROFILE.dimensions // len(digest))]


@dataclass(frozen=True)
class Shelf:
    """One tenant's library on real parts, and what its readers see by the ordinary client."""

    qdrant: Qdrant
    client: AsyncQdrantClient
    alias: str
    tenant: str
    library: Library
    embedder: Unit

    async def visible(self, epoch: int | None = None) -> list[StoredPassage]:
        """All that a reader with every right finds now, or found at an epoch."""
        now = await read(self.qdrant, self.alias, self.tenant, 5) if epoch is None else epoch
        scope = Scope(
            self.tenant,
            now,
            tuple(AccessLevel),
            frozenset({"sre"}),
            tuple(State),
            CHUNKING.version,
        )
        records, _ = await self.client.scroll(self.alias, scope.filter(), limit=10_000)
        found = [passage_in(str(record.id), record.payload) for record in records]
        assert all(scope.permits(passage) for passage in found)
        return sorted(found, key=lambda passage: (passage.document_id, passage.chunk))

    async def texts(self, epoch: int | None = None) -> list[str]:
        return [passage.text for passage in await self.visible(epoch)]

    async def stored(self) -> int:
        """Rows of the tenant, live or not."""
        mine = models.FieldCondition(key="tenant_id", match=models.MatchValue(value=self.tenant))
        found = await self.client.count(self.alias, models.Filter(must=[mine]), exact=True)
        return found.count


async def create(client: AsyncQdrantClient, name: str, **more: Any) -> None:  # noqa: ANN401 - what the client takes
    """A collection by the contract, without its indexes, as a set-up that was cut off leaves it."""
    dense = models.VectorParams(size=PROFILE.dimensions, distance=models.Distance.COSINE)
    words = models.SparseVectorParams(modifier=models.Modifier.IDF)
    told = {
        collection.PROFILE: PROFILE.id,
        collection.CHUNKING: CHUNKING.version,
        collection.TERMS: bm25.VERSION,
    }
    await client.create_collection(
        name,
        vectors_config={collection.DENSE: dense},
        sparse_vectors_config={collection.BM25: words},
        **{"metadata": told, **more},
    )


def preparation() -> Preparation:
    return Preparation(CHUNKING, AccessLevel.TEAM)


def shelf(
    qdrant: Qdrant,
    client: AsyncQdrantClient,
    redis_url: str,
    tenant: str,
    alias: str = collection.DEFAULT_ALIAS,
) -> Shelf:
    embedder = Unit()
    library = Library(
        index=Index(qdrant, alias, PROFILE, CHUNKING.version),
        leases=Leases(lease.connect(redis_url), quiet=0.001),
        embedder=embedder,
        batching=Batching(inputs=16, tokens=4_096, input_limit=PROFILE.input_limit),
        preparation=preparation(),
    )
    return Shelf(qdrant, client, alias, tenant, library, embedder)
