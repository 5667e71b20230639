"""The stage killed at random moments while a folder goes in, as `kill -9` does it."""

import asyncio
import math
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from chassis.errors import SluiceError
from chassis.identity import AccessLevel
from cli.folder import walk
from cli.identity import Identity
from cli.ingest_service import connected
from cli.patience import Patience
from cli.sync import Plan, sync
from corpus.epochs import read
from corpus.points import StoredPassage
from corpus.qdrant import Qdrant, wire
from corpus.scope import live, match
from services.ingest.prepare import Header
from tests.capacity.server import Server
from tests.corpus.payloads import passage_in
from tests.ingest import parts
from tests.ingest.parts import Part
from tests.stages import free_port

ALIAS, TENANT, SOURCE = "killed", "demo", "folder"
FILES = 24
LONGEST = 0.5  # seconds after a first document at which the stage is killed, at most
# A channel to the process that was killed tries again after at most a second.
PLAN = Plan(SOURCE, retire=True, expected=True, pauses=(0.4,) * 4)
IDENTITY = Identity("developer", TENANT, AccessLevel.TEAM)

Seen = Mapping[str, list[StoredPassage]]


@pytest.fixture
async def provider() -> AsyncIterator[str]:
    """URL of an embedding model that takes five milliseconds a text."""
    async with parts.scripted_model(rate=200) as url:
        yield url


@pytest.fixture
def stage(node: Part, redis: Server, provider: str) -> Iterator[Part]:
    running = parts.ingest(
        free_port(),
        node.url,
        redis.url,
        provider,
        SLUICE_COLLECTION=ALIAS,
        SLUICE_CHUNK_TOKENS="128",
    )
    running.start()
    yield running
    running.kill()


def write(folder: Path, round_: int, draw: random.Random) -> None:
    """Some files are new, some change, some go."""
    for number in range(FILES):
        path = folder / f"{number:02}.md"
        if draw.random() < 0.1 and round_:
            path.unlink(missing_ok=True)
        elif draw.random() < 0.6:
            sections = (
                f"## Part {n}\n\nText {n} of round {round_}.\n" for n in range(draw.randint(1, 6))
            )
            path.write_text(f"# Document {number}\n\n" + "\n".join(sections))
    (folder / "kept.md").write_text("# Kept\n\nThis one never changes.\n")


async def bring(folder: Path, stage: Part) -> None:
    async with connected(f"127.0.0.1:{stage.port}", IDENTITY.for_ingest) as index:
        await sync(index, walk(folder), PLAN, lambda: None)


async def seen(qdrant: Qdrant, client: AsyncQdrantClient) -> Seen:
    """What a reader finds now, by document."""
    epoch = await read(qdrant, ALIAS, TENANT, 5)
    condition = wire.Filter(must=[match("tenant_id", TENANT), *live(epoch)])
    records, _ = await client.scroll(ALIAS, condition, limit=10_000)
    found: dict[str, list[StoredPassage]] = {}
    for record in records:
        passage = passage_in(str(record.id), record.payload)
        found.setdefault(passage.document_id, []).append(passage)
    return found


def torn(found: Seen) -> list[str]:
    """Documents of which a reader saw two revisions, or not all."""
    return [
        name
        for name, passages in found.items()
        if len({passage.revision for passage in passages}) != 1
        or sorted(passage.chunk for passage in passages) != list(range(passages[0].chunks))
    ]


async def looks(qdrant: Qdrant, client: AsyncQdrantClient) -> AsyncGenerator[list[str]]:
    while True:
        yield torn(await seen(qdrant, client))


def expected(folder: Path) -> dict[str, int]:
    """Chunks of every document in the folder."""
    preparation = parts.preparation()
    return {
        path.name: len(
            preparation.prepare(TENANT, Header(path.name, SOURCE), path.read_bytes()).chunks
        )
        for path in folder.iterdir()
    }


@pytest.mark.parametrize(
    "kills", [pytest.param(1, id="short"), pytest.param(50, id="long", marks=pytest.mark.soak)]
)
async def test_whenever_the_stage_is_killed_no_reader_sees_half_and_a_second_run_mends_all(
    stage: Part, qdrant: Qdrant, client: AsyncQdrantClient, tmp_path: Path, kills: int
) -> None:
    draw, clock = random.Random(kills), asyncio.get_running_loop().time
    write(tmp_path, 0, draw)
    await bring(tmp_path, stage)
    failed, looked = 0, 0
    for round_ in range(1, kills + 1):
        write(tmp_path, round_, draw)
        epoch = await read(qdrant, ALIAS, TENANT, 5)
        bringing = asyncio.create_task(bring(tmp_path, stage))
        async with asyncio.timeout(60), aclosing(looks(qdrant, client)) as reading:
            end = math.inf
            async for half in reading:
                assert half == []
                looked += 1
                # Until then it waits for the lease of the one that was killed before.
                if end == math.inf and await read(qdrant, ALIAS, TENANT, 5) != epoch:
                    end = clock() + draw.uniform(0, LONGEST)
                if bringing.done() or clock() > end:
                    break
        stage.kill()
        (result,) = await asyncio.gather(bringing, return_exceptions=True)
        assert result is None or isinstance(result, SluiceError)
        failed += result is not None
        assert torn(await seen(qdrant, client)) == []
        await asyncio.to_thread(stage.start)
    await bring(tmp_path, stage)
    found = await seen(qdrant, client)
    assert torn(found) == []
    assert {name: len(passages) for name, passages in found.items()} == expected(tmp_path)
    assert failed > 0
    assert looked > kills


@pytest.mark.parametrize(
    "updates", [pytest.param(40, id="short"), pytest.param(500, id="long", marks=pytest.mark.soak)]
)
async def test_a_reader_during_updates_never_sees_two_revisions_of_one_document(
    stage: Part, qdrant: Qdrant, client: AsyncQdrantClient, tmp_path: Path, updates: int
) -> None:
    draw = random.Random(updates)
    write(tmp_path, 0, draw)
    await bring(tmp_path, stage)
    looked = 0

    async def update() -> None:
        async with connected(f"127.0.0.1:{stage.port}", IDENTITY.for_ingest) as index:
            for number in range(updates):
                sections = "".join(f"\n## P{n}\n\nText {number}.\n" for n in range(1 + number % 5))
                put = partial(index.put, "00.md", SOURCE, f"# Document{sections}".encode())
                await Patience(lambda _: None).call(put)

    updating = asyncio.create_task(update())
    async with aclosing(looks(qdrant, client)) as reading:
        async for half in reading:
            assert half == []
            looked += 1
            if updating.done():
                break
    await updating
    assert looked > updates / 10
    assert (await seen(qdrant, client))["00.md"][0].chunks == 1 + (updates - 1) % 5
