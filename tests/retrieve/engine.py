"""A real Qdrant node as a process, and passages written to it."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from qdrant_client import AsyncQdrantClient, models

from bench.parts import ordinary
from chassis.identity import AccessLevel
from corpus import bm25, collection, epochs
from corpus.collection import BM25, DENSE
from corpus.epochs import LIVE
from corpus.points import Key, Kind, State, StoredBlock, StoredPassage, point_id, to_payload
from corpus.profile import EmbeddingProfile
from corpus.qdrant import Qdrant
from tests.stages import START_SECONDS, free_port

CHUNKING = "blocks1-64-1-test"
SMALL = EmbeddingProfile(
    id="small",
    model="small",
    dimensions=8,
    input_limit=64,
    chunk_tokens=16,
    tokenizer="bound",
    document_template="{title}\n{text}",
    query_template="query: {query}",
)
PASSAGE = StoredPassage(
    tenant="acme",
    document_id="runbooks/disk.md",
    source="runbooks",
    revision="r1",
    content_hash="h1",
    chunking_version=CHUNKING,
    chunk=0,
    chunks=1,
    input_hash="1f" * 32,
    title="Disk full",
    version="3",
    area="storage",
    document_type="runbook",
    state=State.PUBLISHED,
    access=AccessLevel.PUBLIC,
    groups=(),
    uri="https://wiki.example/disk",
    section_id="s1",
    heading_path=("Disk full", "Steps"),
    blocks=(StoredBlock(0, 0, Kind.PARAGRAPH, 10, 24, "Free the disk."),),
    valid_from=1,
    valid_to=LIVE,
)


class Node:
    """`python -m local.qdrant_node` on a port and a folder that outlive it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "local.qdrant_node"],
            env={
                **os.environ,
                "SLUICE_QDRANT_DATA": str(self._folder),
                "SLUICE_QDRANT_PORT": str(self.port),
            },
            stderr=subprocess.DEVNULL,
        )
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service="readiness"),
                timeout=START_SECONDS,
                wait_for_ready=True,
            )

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_SECONDS)


@contextmanager
def node(folder: Path) -> Iterator[Node]:
    """A node that is ready."""
    found = Node(folder)
    try:
        found.start()
        yield found
    finally:
        found.kill()


@dataclass(frozen=True, slots=True)
class Shelf:
    """One collection to write passages to."""

    qdrant: Qdrant
    client: AsyncQdrantClient  # somebody else's
    alias: str
    profile: EmbeddingProfile

    async def set_up(self) -> None:
        await collection.ensure(self.qdrant, self.alias, self.profile, CHUNKING)

    async def put(self, *rows: tuple[StoredPassage, list[float]]) -> list[str]:
        """Write the passages; their point ids, in order."""
        payloads = [(_id(passage), to_payload(passage), vector) for passage, vector in rows]
        await self.put_raw(*payloads)
        return [identity for identity, _, _ in payloads]

    async def put_raw(self, *rows: tuple[str, dict[str, Any], list[float]]) -> None:
        points = [
            models.PointStruct(
                id=identity, vector={DENSE: vector, BM25: _words(payload)}, payload=payload
            )
            for identity, payload, vector in rows
        ]
        await self.client.upsert(self.alias, points, wait=True)

    async def move_to(self, tenant: str, epoch: int) -> None:
        """Let the tenant's readers be at this epoch."""
        payload = {epochs.TENANT: tenant, epochs.EPOCH: epoch, epochs.PUBLISHER: ""}
        point = models.PointStruct(id=epochs.point_id(tenant), vector={}, payload=payload)
        await self.client.upsert(self.alias, [point], wait=True)


@asynccontextmanager
async def shelf(engine: Node, alias: str, profile: EmbeddingProfile) -> AsyncIterator[Shelf]:
    qdrant, client = collection.connect(engine.url), ordinary.client(engine.url)
    yield Shelf(qdrant, client, alias, profile)
    await client.close()
    await qdrant.close()


def passage(**changes: object) -> StoredPassage:
    return replace(PASSAGE, **changes)  # type: ignore[arg-type] # by name


def _words(payload: dict[str, Any]) -> models.SparseVector:
    """Of the text alone, as far as there is one: what is spoiled on purpose still has to get in."""
    blocks = payload.get(Key.BLOCKS) or []
    vector = bm25.document_vector("\n".join(str(block["text"]) for block in blocks))
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def _id(written: StoredPassage) -> str:
    return point_id(written, f"{written.chunk}@{written.valid_from}")
