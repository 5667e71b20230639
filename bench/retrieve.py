"""What the retrieve stage adds to a search: its p50 over the bare client's same query and one hop.

Stage, client and hop take turns in one run, and mean nothing alone. Each round has a question of
its own that was asked once before, so that the stage embeds none and still reads passages anew. The
floor of `fused` is the same two calls by the client; `in_qdrant` is the other way to fuse, one
query with RRF inside Qdrant, for comparison. Prints JSON: milliseconds by mode, and their ratio.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.conversions.conversion import GrpcToRest

from bench.parts import embeddings, ordinary, programs, server
from bench.parts.echo import SERVICE
from bench.parts.files import WORDS
from bench.parts.rows import Reach, row
from bench.parts.windows import percentile
from chassis import channels
from chassis.errors import Exhausted
from chassis.identity import AccessLevel, Caller, Minter, development_key
from corpus import bm25, collection, epochs, profile
from corpus.epochs import LIVE
from corpus.points import Kind, State, StoredBlock, StoredPassage, point_id, to_payload
from corpus.qdrant import wire
from corpus.scope import Scope
from local import ports
from services.retrieve.index import NEAREST
from sluice.retrieve.v1 import retrieve_pb2 as pb
from sluice.retrieve.v1.retrieve_pb2_grpc import RetrieveServiceStub

if TYPE_CHECKING:  # the asynchronous face exists in the type stubs alone
    from sluice.retrieve.v1.retrieve_pb2_grpc import RetrieveServiceAsyncStub

PASSAGES, ROUNDS = 2_000, 300
WARM = 30  # rounds that are not counted
BATCH = 250
WORDS_EACH = 120
WORDS_ASKED = 8
TOP_K, CANDIDATES = 8, 50
STARTS_WITHIN = 120.0
LOOK_EVERY = 0.1
LIMIT = 30.0  # seconds that one call may take
CHUNKING = "bench"
CALLER = Caller("bench", "bench", AccessLevel.TEAM, frozenset({"sre"}))
MODES = {
    "dense": pb.SEARCH_MODE_DENSE,
    "sparse": pb.SEARCH_MODE_SPARSE,
    "fused": pb.SEARCH_MODE_FUSED,
}

Work = Callable[[], Awaitable[object]]
Method: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"


@dataclass(frozen=True, slots=True)
class House:
    """Ports of what runs."""

    qdrant: int
    echo: int
    stage: int

    @property
    def qdrant_url(self) -> str:
        return f"http://{ports.LOOPBACK}:{self.qdrant}"


@contextmanager
def running(passages: int) -> Iterator[House]:
    """An index of so many passages, a model that answers at once, the stage, and the hop."""
    house = House(*ports.free(3))
    (model,) = ports.free(1)
    with ExitStack() as ending:
        folder = Path(ending.enter_context(TemporaryDirectory()))
        told = {
            "SLUICE_ENV": "development",
            "SLUICE_REDIS_URL": ending.enter_context(server.running()).url,
            "SLUICE_QDRANT_URL": house.qdrant_url,
            "SLUICE_QDRANT_PORT": str(house.qdrant),
            "SLUICE_QDRANT_DATA": str(folder / "qdrant"),
            "SLUICE_EMBEDDING_BASE_URL": f"http://{ports.LOOPBACK}:{model}/v1",
            "SLUICE_EMBEDDING_REQUESTS_PER_MINUTE": "600000",
            "SLUICE_CAPACITY_DECISION_SECONDS": "2",
            "SLUICE_SEARCH_CANDIDATES": str(CANDIDATES),
            "SLUICE_PORT": str(house.stage),
        }
        programs.start(ending, ["bench.parts.embeddings", "--port", str(model)], told)
        programs.start(ending, ["bench.parts.echo", "--port", str(house.echo)], told)
        programs.started(ending, ["local.qdrant_node"], told, house.qdrant)
        asyncio.run(filled(house, passages))
        programs.started(ending, ["services.retrieve"], told, house.stage)
        yield house


async def fill(client: AsyncQdrantClient, passages: int) -> None:
    """So many passages of the caller's tenant, as ingest would have written them."""
    draw = random.Random(1)  # noqa: S311 - the same texts in every run
    for first in range(0, passages, BATCH):
        points = [_point(draw, number) for number in range(first, min(first + BATCH, passages))]
        await client.upsert(collection.DEFAULT_ALIAS, points, wait=True)
    payload = {epochs.TENANT: CALLER.tenant, epochs.EPOCH: 1, epochs.PUBLISHER: ""}
    point = models.PointStruct(id=epochs.point_id(CALLER.tenant), vector={}, payload=payload)
    await client.upsert(collection.DEFAULT_ALIAS, [point], wait=True)


def _point(draw: random.Random, number: int) -> models.PointStruct:
    text = " ".join(draw.choices(WORDS, k=WORDS_EACH)) + f" {number}."
    third = len(text) // 3
    blocks = tuple(
        StoredBlock(at, 0, Kind.PARAGRAPH, at * third, (at + 1) * third, text[at * third :][:third])
        for at in range(3)
    )
    passage = replace(PASSAGE, document_id=f"document-{number // 5}", chunk=number, blocks=blocks)
    return models.PointStruct(
        id=point_id(passage, str(number)),
        vector={
            collection.DENSE: embeddings.vector(text),
            collection.BM25: _sparse(bm25.passage_vector(passage)),
        },
        payload=to_payload(passage),
    )


PASSAGE = StoredPassage(
    tenant=CALLER.tenant,
    document_id="",
    source="bench",
    revision="r1",
    content_hash="0" * 64,
    chunking_version=CHUNKING,
    chunk=0,
    chunks=1,
    input_hash="0" * 64,
    title="A runbook of the benchmark",
    version="1",
    area="storage",
    document_type="runbook",
    state=State.PUBLISHED,
    access=AccessLevel.TEAM,
    groups=("sre",),
    uri="https://wiki.example/runbook",
    section_id="s1",
    heading_path=("A runbook of the benchmark", "Steps"),
    blocks=(),
    valid_from=1,
    valid_to=LIVE,
)


def _sparse(vector: bm25.SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


@dataclass(frozen=True, slots=True)
class Bare:
    """The same queries by the client alone."""

    client: AsyncQdrantClient
    condition: models.Filter
    rights: models.Filter

    async def dense(self, question: str) -> Sequence[models.ScoredPoint]:
        return await self._one(self._dense(question, TOP_K, payload=True))

    async def sparse(self, question: str) -> Sequence[models.ScoredPoint]:
        return await self._one(self._words(question, TOP_K, payload=True))

    async def fused(self, question: str) -> Sequence[models.Record]:
        both = [self._dense(question, CANDIDATES), self._words(question, CANDIDATES)]
        found = await self.client.query_batch_points(collection.DEFAULT_ALIAS, both)
        best = [point.id for one in found for point in one.points[: TOP_K // 2]]
        return await self.client.retrieve(
            collection.DEFAULT_ALIAS, best, with_payload=True, with_vectors=[collection.DENSE]
        )

    async def in_qdrant(self, question: str) -> Sequence[models.ScoredPoint]:
        both = [self._dense(question, CANDIDATES), self._words(question, CANDIDATES)]
        found = await self.client.query_points(
            collection.DEFAULT_ALIAS,
            prefetch=[
                models.Prefetch(
                    query=one.query,
                    using=one.using,
                    filter=one.filter,
                    params=one.params,
                    limit=one.limit,
                )
                for one in both
            ],
            query=models.FusionQuery(fusion=models.Fusion.RRF),
            limit=TOP_K,
            with_payload=True,
        )
        return found.points

    async def _one(self, query: models.QueryRequest) -> Sequence[models.ScoredPoint]:
        (found,) = await self.client.query_batch_points(collection.DEFAULT_ALIAS, [query])
        return found.points

    def _dense(self, question: str, limit: int, *, payload: bool = False) -> models.QueryRequest:
        return models.QueryRequest(
            query=embeddings.vector(_input(question)),
            using=collection.DENSE,
            filter=self.condition,
            params=models.SearchParams(
                hnsw_ef=NEAREST.hnsw_ef, acorn=models.AcornSearchParams(enable=True)
            ),
            limit=limit,
            with_payload=payload,
        )

    def _words(self, question: str, limit: int, *, payload: bool = False) -> models.QueryRequest:
        return models.QueryRequest(
            query=_sparse(bm25.question_vector(question)),
            using=collection.BM25,
            filter=self.condition,
            params=models.SearchParams(idf=models.IdfCorpusParams(corpus=self.rights)),
            limit=limit,
            with_payload=payload,
        )


def _input(question: str) -> str:
    return profile.profile(profile.DEFAULT).query_input(question)


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage over gRPC."""

    stub: "RetrieveServiceAsyncStub"
    minter: Minter

    def token(self) -> str:
        return self.minter.mint(CALLER, "retrieve")

    async def ask(
        self, question: str, mode: pb.SearchMode.ValueType, token: str
    ) -> pb.RetrieveResponse:
        request = pb.RetrieveRequest(question=question, top_k=TOP_K, mode=mode, diversity=0.0)
        return await channels.call(
            self.stub.Retrieve, request, stage="retrieve", token=token, limit=LIMIT
        )


@asynccontextmanager
async def connected(house: House) -> AsyncIterator[tuple[Stage, Work, Bare]]:
    """The stage, the hop that says as much as the stage does, and the bare client."""
    client = ordinary.client(house.qdrant_url)
    target = f"dns:///{ports.LOOPBACK}:{house.stage}"
    channel = channels.connect(
        target, service="sluice.retrieve.v1.RetrieveService", idempotent=True
    )
    async with channel, grpc.aio.insecure_channel(f"{ports.LOOPBACK}:{house.echo}") as echo:
        stage = Stage(RetrieveServiceStub(channel), Minter(development_key()))
        (question,) = _questions(1)
        answer = await _first(stage, question)
        keep: Method = echo.unary_unary(f"/{SERVICE}/Keep")
        await keep(answer.SerializeToString())
        scope = Scope.of(CALLER, epoch=1, states=(State.PUBLISHED,), chunking_version=CHUNKING)
        say: Method = echo.unary_unary(f"/{SERVICE}/Say")
        yield (
            stage,
            partial(say, question.encode()),
            Bare(
                client,
                GrpcToRest.convert_filter(scope.filter()),
                GrpcToRest.convert_filter(wire.Filter(must=scope.rights())),
            ),
        )
    await client.close()


async def _first(stage: Stage, question: str) -> pb.RetrieveResponse:
    """A new pool admits nothing for some seconds."""
    async with asyncio.timeout(STARTS_WITHIN):
        while True:
            try:
                return await stage.ask(question, MODES["dense"], stage.token())
            except Exhausted as failure:
                await asyncio.sleep(failure.retry_after or LOOK_EVERY)


def _questions(count: int) -> list[str]:
    draw = random.Random(2)  # noqa: S311 - the same questions in every run
    return [" ".join(draw.choices(WORDS, k=WORDS_ASKED)) + "?" for _ in range(count)]


async def filled(house: House, passages: int) -> None:
    qdrant, client = collection.connect(house.qdrant_url), ordinary.client(house.qdrant_url)
    used = profile.profile(profile.DEFAULT)
    await collection.ensure(qdrant, collection.DEFAULT_ALIAS, used, CHUNKING)
    await fill(client, passages)
    await client.close()
    await qdrant.close()


async def timed(house: House, rounds: int) -> Mapping[str, Sequence[float]]:
    async with connected(house) as (stage, hop, bare):
        return await _times(stage, hop, bare, rounds)


async def _times(stage: Stage, hop: Work, bare: Bare, rounds: int) -> Mapping[str, Sequence[float]]:
    """Seconds of each, round by round, in an order that changes."""
    times: dict[str, list[float]] = {}
    draw = random.Random(3)  # noqa: S311 - an order
    questions = _questions(WARM + rounds)
    for question in questions:
        await stage.ask(question, MODES["dense"], stage.token())
    for number, question in enumerate(questions):
        token = stage.token()  # the gateway's work
        turns: list[tuple[str, Work]] = [
            ("echo", hop),
            ("in_qdrant", partial(bare.in_qdrant, question)),
        ]
        for name, mode in MODES.items():
            turns.append((f"{name} stage", partial(stage.ask, question, mode, token)))
            turns.append((f"{name} bare", partial(getattr(bare, name), question)))
        draw.shuffle(turns)
        for name, work in turns:
            begin = time.perf_counter()
            await work()
            if number >= WARM:
                times.setdefault(name, []).append(time.perf_counter() - begin)
    return times


def _figures(times: Mapping[str, Sequence[float]], mode: str) -> dict[str, float]:
    stage, bare, echo = (_p50(times[name]) for name in (f"{mode} stage", f"{mode} bare", "echo"))
    return {
        "stage_ms": stage,
        "bare_ms": bare,
        "echo_ms": echo,
        "ratio": round(stage / (bare + echo), 3),
    }


def _p50(seconds: Sequence[float]) -> float:
    return round(percentile(seconds, 0.5) * 1_000, 3)


def measure(passages: int, rounds: int) -> dict[str, Any]:
    with running(passages) as house:
        times = asyncio.run(timed(house, rounds))
    modes = {mode: _figures(times, mode) for mode in MODES}
    return {
        "passages": passages,
        "rounds": rounds,
        "modes": modes,
        "in_qdrant_ms": _p50(times["in_qdrant"]),
        "rows": _rows(modes),
    }


def _rows(modes: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    return [
        row(
            f"a search, {mode}",
            figures["stage_ms"],
            "ms",
            Reach(1.15),
            beside="the client's same query, and an echo",
            than=figures["bare_ms"] + figures["echo_ms"],
        )
        for mode, figures in modes.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    report = measure(options.passages, options.rounds)
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for mode, figures in report["modes"].items():
        print(mode, *(f"{name} {value}" for name, value in figures.items()), sep="  ")
    print(f"in_qdrant_ms {report['in_qdrant_ms']}")


if __name__ == "__main__":
    main()
