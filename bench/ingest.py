"""What bringing a folder in costs beside its embedding: a first run, the same again, one edit.

The provider has a fixed speed. The floor is the same texts sent to it by the stage's own client,
in the batches that the stage makes of each document. Prints JSON: seconds, their ratio, files a
second of the unchanged run, texts embedded after one edit, and the largest memory of each process.
"""

import argparse
import asyncio
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.parts import programs, server
from bench.parts.files import write
from bench.parts.processes import megabytes
from bench.parts.rows import Reach, row
from capacity import Limits, SharedBucket
from chassis import logs
from chassis.identity import AccessLevel
from cli.concurrency import each
from cli.folder import walk
from cli.identity import Identity
from cli.ingest_service import connected
from cli.sync import AT_ONCE, Plan, Report, sync
from corpus import tokens
from corpus.profile import DEFAULT, profile
from local import ports
from providers.embeddings import EmbeddingClient
from services.ingest.chunk import Chunk, Chunking
from services.ingest.embed import Batching
from services.ingest.prepare import Header, Preparation

FILES = 300
RATE = 40.0  # inputs a second: a few times the bundled model's own speed
SOURCE = "bench"
UNCHANGED = Reach(200, "figure", least=True)
# Wide enough that the provider alone sets the pace.
UNLIMITED = Limits(
    requests_per_minute=6e6, tokens_per_minute=6e8, in_flight=64, max_reservation=32_000
)


@dataclass(frozen=True, slots=True)
class House:
    """The stage and what it needs; `processes` by name."""

    redis: str
    provider: str
    stage: str
    processes: dict[str, subprocess.Popen[bytes]]


@contextmanager
def running(rate: float) -> Iterator[House]:
    """All are ready and empty. `rate` is the provider's inputs a second."""
    qdrant, provider, stage = ports.free(3)
    with ExitStack() as ending:
        folder = Path(ending.enter_context(TemporaryDirectory()))
        redis = ending.enter_context(server.running()).url
        url = f"http://{ports.LOOPBACK}:{provider}/v1"
        house = House(redis, url, f"{ports.LOOPBACK}:{stage}", {})
        told = {
            "SLUICE_ENV": "development",
            "SLUICE_REDIS_URL": redis,
            "SLUICE_QDRANT_URL": f"http://{ports.LOOPBACK}:{qdrant}",
            "SLUICE_QDRANT_PORT": str(qdrant),
            "SLUICE_QDRANT_DATA": str(folder / "qdrant"),
            "SLUICE_EMBEDDING_BASE_URL": url,
            "SLUICE_EMBEDDING_REQUESTS_PER_MINUTE": str(UNLIMITED.requests_per_minute),
            "SLUICE_EMBEDDING_TOKENS_PER_MINUTE": str(UNLIMITED.tokens_per_minute),
            "SLUICE_EMBEDDING_IN_FLIGHT": str(UNLIMITED.in_flight),
            "SLUICE_PORT": str(stage),
        }
        words = ["bench.parts.embeddings", "--port", str(provider), "--rate", str(rate)]
        house.processes["provider"] = programs.start(ending, words, told)
        for name, module, port in (
            ("qdrant", "local.qdrant_node", qdrant),
            ("ingest", "services.ingest", stage),
        ):
            house.processes[name] = programs.started(ending, [module], told, port)
        yield house


def prepared(folder: Path) -> list[Sequence[Chunk]]:
    """The passages of every document, as the stage makes them."""
    used = profile(DEFAULT)
    chunking = Chunking(used, tokens.counter(used), used.chunk_tokens, 1)
    preparation = Preparation(chunking, AccessLevel.TEAM)
    return [
        preparation.prepare("t", Header(path.name, SOURCE), path.read_bytes()).chunks
        for path in sorted(folder.iterdir())
    ]


async def floor(house: House, documents: Sequence[Sequence[Chunk]]) -> float:
    """Seconds that embedding alone takes, as many documents at once as a sync sends."""
    used = profile(DEFAULT)
    bucket = SharedBucket.connect(house.redis, "floor", UNLIMITED)
    client = EmbeddingClient(
        base_url=house.provider,
        api_key="",
        model=used.model,
        dimensions=used.dimensions,
        bucket=bucket,
        attempt_timeout=60,
    )
    batching = Batching(inputs=64, tokens=4_096, input_limit=used.input_limit)

    async def embed(chunks: Sequence[Chunk]) -> None:
        async for _ in batching.embed(client, chunks):
            pass

    began = time.perf_counter()
    await each(documents, embed, at_once=AT_ONCE)
    seconds = time.perf_counter() - began
    await client.close()
    await bucket.close()
    return seconds


async def bring(house: House, folder: Path) -> tuple[float, Report]:
    """Seconds of one sync, and what it did."""
    identity = Identity("bench", "bench", AccessLevel.TEAM)
    began = time.perf_counter()
    async with connected(house.stage, identity.for_ingest) as index:
        report = await sync(index, walk(folder), Plan(SOURCE, retire=True), lambda: None)
    return time.perf_counter() - began, report


def measure(files: int, rate: float) -> dict[str, Any]:
    with running(rate) as house, TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, files)
        documents = prepared(folder)
        # Both before and after, so that a machine that slows down is seen.
        before = asyncio.run(floor(house, documents))
        first, report = asyncio.run(bring(house, folder))
        after = asyncio.run(floor(house, documents))
        again, unchanged = asyncio.run(bring(house, folder))
        edited = folder / "00000.md"
        edited.write_text(edited.read_text().replace("Part 0\n\n", "Part 0\n\nNew words. "))
        edit, changed = asyncio.run(bring(house, folder))
        memory = {name: round(megabytes(one.pid, "VmHWM")) for name, one in house.processes.items()}
    embedding = (before + after) / 2
    return {
        "files": files,
        "refused": len(report.refused),
        "chunks": report.chunks,
        "provider_inputs_per_second": rate,
        "embedding_seconds": [round(before, 2), round(after, 2)],
        "first_seconds": round(first, 2),
        "first_to_embedding": round(first / embedding, 3),
        "unchanged_seconds": round(again, 3),
        "unchanged_embedded": unchanged.embedded,
        "unchanged_sent": unchanged.chunks,
        "unchanged_files_per_second": round(files / again),
        "edit_seconds": round(edit, 3),
        "edit_embedded": changed.embedded,
        "largest_memory_mb": memory,
        "rows": [
            row(
                "bringing a folder in, its embedding included",
                first,
                "s",
                Reach(1.1),
                beside="its embedding alone",
                than=embedding,
            ),
            row("the same folder again", files / again, "files/s", UNCHANGED),
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rate", type=float, default=RATE, help="inputs a second; 0 at once")
    parser.add_argument("--json", action="store_true", help="one line, for programs")
    given = parser.parse_args()
    logs.start("bench", "warning")
    print(json.dumps(measure(given.files, given.rate), indent=None if given.json else 2))


if __name__ == "__main__":
    main()
