"""What was embedded for a document is not lost with the call that could not end it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from capacity import Workload
from chassis.errors import DeadlineExceeded, Internal, SluiceError, Unavailable
from chassis.identity import AccessLevel
from cli.folder import walk
from cli.identity import Identity
from cli.ingest_service import connected
from cli.sync import Plan, sync
from services.ingest import embed, keep
from services.ingest.index import Index
from services.ingest.library import Outcome
from services.ingest.prepare import Header
from tests.capacity.server import Server
from tests.ingest import parts
from tests.ingest.parts import Part, Shelf, Unit
from tests.stages import free_port

A = Header("a.md", "src")
PASSAGES = 50
BATCH = 16  # inputs of one call, as the shelf sends them


def document(passages: int = PASSAGES) -> bytes:
    return "\n".join(f"# H{n}\n\nText {n}.\n" for n in range(passages)).encode()


class Failing(Unit):
    """Answers so many calls and then fails."""

    def __init__(self, calls: int, failure: BaseException) -> None:
        super().__init__()
        self.left = calls
        self.failure = failure

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        if not self.left:
            raise self.failure
        self.left -= 1
        return await super().embed(inputs, tokens, workload)


async def put_failing(shelf: Shelf, calls: int, failure: BaseException) -> None:
    """Put the document with a provider that fails after so many calls."""
    failing = replace(shelf.library, embedder=Failing(calls, failure))
    await failing.put(shelf.tenant, A, document())


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "PAUSES", ())


@pytest.mark.parametrize("failure", [DeadlineExceeded("over"), Unavailable("down"), Internal("no")])
async def test_the_next_call_embeds_only_what_is_left(library: Shelf, failure: SluiceError) -> None:
    with pytest.raises(type(failure)):
        await put_failing(library, 2, failure)
    assert await library.visible() == []
    done = await library.library.put(library.tenant, A, document())
    assert (done.outcome, done.chunks, done.embedded) == (Outcome.ADDED, 50, 50 - 2 * BATCH)
    assert len(await library.visible()) == PASSAGES
    assert library.embedder.inputs[0].endswith("Text 32.")


async def test_a_call_whose_time_is_over_says_how_far_the_document_came(library: Shelf) -> None:
    told = []
    for _ in range(2):
        with pytest.raises(DeadlineExceeded, match="passages are embedded and kept") as late:
            await put_failing(library, 1, DeadlineExceeded("over"))
        told.append((late.value.reason, late.value.metadata))
    assert told == [
        ("EMBEDDING_UNFINISHED", {"embedded": "16", "passages": "50"}),
        ("EMBEDDING_UNFINISHED", {"embedded": "32", "passages": "50"}),
    ]


async def test_a_call_that_is_cut_off_loses_only_what_it_embedded_last(
    library: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep, "EVERY", 0.0)
    with pytest.raises(asyncio.CancelledError):
        await put_failing(library, 3, asyncio.CancelledError())
    assert (await library.library.put(library.tenant, A, document())).embedded == 2


async def test_a_document_that_is_done_soon_is_stored_once(library: Shelf) -> None:
    await library.library.put(library.tenant, A, document())
    assert await library.stored() == PASSAGES


async def test_vectors_are_stored_when_enough_time_has_passed(library: Shelf) -> None:
    index, now = library.library.index, [0.0]
    kept = keep.Keep(index, library.tenant, lambda: now[0])
    for seconds, name in ((keep.EVERY / 2, "a"), (keep.EVERY, "b"), (keep.EVERY * 1.5, "c")):
        now[0] = seconds
        await kept.add({name: [0.5] * 384})
    assert (await index.vectors(library.tenant, ["a", "b", "c"])).keys() == {"a", "b"}


async def test_an_index_that_takes_no_vectors_is_not_the_documents_failure(
    library: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_given: object) -> None:
        raise Unavailable("the index does not answer")

    monkeypatch.setattr(keep, "EVERY", 0.0)
    monkeypatch.setattr(Index, "keep", down)
    assert (await library.library.put(library.tenant, A, document())).embedded == PASSAGES
    with pytest.raises(Internal, match="no"):
        await replace(library.library, embedder=Failing(0, Internal("no"))).put(
            library.tenant, A, b"another text"
        )


async def test_kept_vectors_are_nobody_elses_and_not_for_ever(
    library: Shelf, another: Callable[[str], Shelf]
) -> None:
    other, index = another(f"{library.tenant}-other"), library.library.index
    await index.keep(library.tenant, {"a": [0.5] * 384}, until=1_000)
    assert (await index.vectors(library.tenant, ["a"])).keys() == {"a"}
    assert await index.vectors(other.tenant, ["a"]) == {}
    await index.clear(library.tenant, 0, before=1_000)
    assert await library.stored() == 1
    await index.clear(library.tenant, 0, before=1_001)
    assert await library.stored() == 0


@pytest.mark.soak
async def test_a_document_too_long_for_one_call_gets_in_by_several(
    node: Part, redis: Server, tmp_path: Path
) -> None:
    (tmp_path / "long.md").write_bytes(document(180))
    person = Identity("developer", "demo", AccessLevel.TEAM)
    async with parts.scripted_model(rate=80) as url:
        stage = parts.ingest(
            free_port(),
            node.url,
            redis.url,
            url,
            SLUICE_COLLECTION="long",
            SLUICE_INGEST_SECONDS="2",
            SLUICE_EMBEDDING_BATCH_INPUTS="8",
            SLUICE_EMBEDDING_REQUESTS_PER_MINUTE="60000",
            SLUICE_EMBEDDING_TOKENS_PER_MINUTE="20000000",
        )
        await asyncio.to_thread(stage.start)
        try:
            async with connected(f"127.0.0.1:{stage.port}", person.for_ingest) as index:
                report = await sync(index, walk(tmp_path), Plan("src", retire=False), lambda: None)
        finally:
            stage.kill()
    assert (report.added, report.refused, report.chunks) == (["long.md"], [], 180)
    assert report.reused > 0
