import asyncio
import uuid
from collections.abc import Callable

import pytest
from qdrant_client import AsyncQdrantClient, models

from chassis.errors import Conflict, InvalidInput
from corpus.qdrant import Qdrant
from services.ingest.index import Index
from services.ingest.library import Outcome
from services.ingest.prepare import Header
from tests.capacity.server import Server
from tests.ingest import parts
from tests.ingest.parts import Shelf

A = Header("a.md", "src")
B = Header("b.md", "src")
OTHER = Header("other.md", "elsewhere")


def paragraphs(count: int, mark: str = "") -> bytes:
    """A document of `count` passages."""
    return "\n".join(f"# H{n}\n\nText {n} {mark}.\n" for n in range(count)).encode()


async def test_a_document_is_added_then_updated_then_unchanged(library: Shelf) -> None:
    first = await library.library.put(library.tenant, A, b"one")
    assert (first.outcome, first.chunks, first.embedded, first.epoch) == (Outcome.ADDED, 1, 1, 1)
    assert await library.texts() == ["one"]
    second = await library.library.put(library.tenant, A, b"two")
    assert (second.outcome, second.epoch) == (Outcome.UPDATED, 2)
    assert await library.texts() == ["two"]
    third = await library.library.put(library.tenant, A, b"two")
    assert (third.outcome, third.embedded, third.epoch) == (Outcome.UNCHANGED, 0, 2)
    assert third.revision == second.revision


async def test_a_second_run_embeds_nothing_and_writes_nothing(library: Shelf) -> None:
    headers = [Header(f"{number}.md", "src") for number in range(5)]
    for header in headers:
        await library.library.put(library.tenant, header, paragraphs(3, header.document_id))
    calls, seen = library.embedder.calls, await library.visible()
    for header in headers:
        await library.library.put(library.tenant, header, paragraphs(3, header.document_id))
    assert library.embedder.calls == calls
    assert await library.visible() == seen
    assert len(seen) == 15


async def test_a_document_that_shrinks_leaves_nothing_behind(library: Shelf) -> None:
    await library.library.put(library.tenant, A, paragraphs(10))
    await library.library.put(library.tenant, A, paragraphs(3))
    assert [passage.chunks for passage in await library.visible()] == [3, 3, 3]


async def test_two_documents_with_the_same_text_are_both_there(library: Shelf) -> None:
    for header in (A, B):
        await library.library.put(library.tenant, header, b"same")
    assert [passage.document_id for passage in await library.visible()] == ["a.md", "b.md"]


async def test_a_change_of_metadata_alone_is_one_new_revision(library: Shelf) -> None:
    await library.library.put(library.tenant, A, b"---\npublication_state: draft\n---\ntext")
    await library.library.put(library.tenant, A, b"---\ngroups: [sre]\n---\ntext")
    (passage,) = await library.visible()
    assert (passage.state.value, passage.groups) == ("published", ("sre",))


async def test_tenants_see_and_change_only_their_own(
    library: Shelf, another: Callable[[str], Shelf]
) -> None:
    other = another(f"{library.tenant}-other")
    await library.library.put(library.tenant, A, b"ours")
    await other.library.put(other.tenant, A, b"theirs")
    await other.library.delete(other.tenant, "a.md")
    assert await library.texts() == ["ours"]
    assert await other.texts() == []


async def test_a_deleted_document_is_gone_and_deleting_again_is_no_error(library: Shelf) -> None:
    await library.library.put(library.tenant, A, paragraphs(3))
    assert await library.library.delete(library.tenant, "a.md") == (True, 2)
    assert await library.visible() == []
    assert await library.library.delete(library.tenant, "a.md") == (False, 2)
    assert await library.library.delete(library.tenant, "never.md") == (False, 2)


async def test_a_document_can_come_back_to_what_it_was(library: Shelf) -> None:
    for text in (b"one", b"two", b"one", b"two", b"one"):
        await library.library.put(library.tenant, A, text)
        assert await library.texts() == [text.decode()]
    assert await library.texts(epoch=1) == ["one"]
    assert await library.texts(epoch=2) == ["two"]
    assert await library.texts(epoch=3) == ["one"]


async def test_rows_are_removed_once_no_reader_can_be_at_their_epoch(library: Shelf) -> None:
    for number in range(3):
        await library.library.put(library.tenant, A, f"text {number}".encode())
    assert await library.stored() == 3
    await library.library.index.clear(library.tenant, 3, before=2**40)
    assert await library.stored() == 1
    assert await library.texts() == ["text 2"]


async def test_a_source_retires_in_one_epoch_what_it_no_longer_holds(library: Shelf) -> None:
    for header in (A, B, Header("c.md", "src"), OTHER):
        await library.library.put(library.tenant, header, b"text")
    retired, epoch = await library.library.reconcile(
        library.tenant, "src", ["b.md", "unknown.md"], allow_empty=False
    )
    assert (retired, epoch) == (["a.md", "c.md"], 5)
    assert [p.document_id for p in await library.visible()] == ["b.md", "other.md"]
    assert await library.library.reconcile(library.tenant, "src", ["b.md"], allow_empty=False) == (
        [],
        5,
    )


async def test_an_empty_source_empties_the_index_only_when_told_so(library: Shelf) -> None:
    for header in (A, OTHER):
        await library.library.put(library.tenant, header, b"text")
    with pytest.raises(InvalidInput, match="source src is empty") as refusal:
        await library.library.reconcile(library.tenant, "src", [], allow_empty=False)
    assert refusal.value.reason == "EMPTY_SOURCE"
    retired, _ = await library.library.reconcile(library.tenant, "src", [], allow_empty=True)
    assert retired == ["a.md"]
    assert [p.document_id for p in await library.visible()] == ["other.md"]


async def test_every_field_that_a_filter_names_has_its_index(
    qdrant: Qdrant, client: AsyncQdrantClient, redis: Server
) -> None:
    strict = models.StrictModeConfig(
        enabled=True, unindexed_filtering_retrieve=False, unindexed_filtering_update=False
    )
    shelf = parts.shelf(qdrant, client, redis.url, "strict", f"strict-{uuid.uuid4().hex}")
    library, index = shelf.library, shelf.library.index
    await parts.create(client, index.name, strict_mode_config=strict)
    for text in (b"one", b"two"):
        await library.put("strict", A, text)
    await index.keep("strict", {"hash": [0.5] * 384}, until=0)
    await index.clear("strict", 2, before=2**40)
    assert await shelf.texts() == ["two"]
    assert await shelf.stored() == 1
    assert [head.document_id for head in (await library.page("strict", "src", "", 9)).heads]
    assert await index.tenants() == ["strict"]
    assert (await library.reconcile("strict", "src", ["b.md"], allow_empty=False))[0] == ["a.md"]
    await library.leases.close()


async def test_a_document_that_moved_to_another_source_stays(library: Shelf) -> None:
    await library.library.put(library.tenant, A, b"text")
    await library.library.put(library.tenant, Header("a.md", "elsewhere"), b"text")
    retired, _ = await library.library.reconcile(library.tenant, "src", [], allow_empty=True)
    assert retired == []
    assert len(await library.visible()) == 1


async def test_documents_are_listed_in_order_page_by_page(library: Shelf) -> None:
    names = [f"{name}.md" for name in ("b", "a/z", "Ä", "a/b", "c")]
    for name in names:
        await library.library.put(library.tenant, Header(name, "src"), paragraphs(2))
    await library.library.put(library.tenant, OTHER, b"text")
    await library.library.delete(library.tenant, "b.md")
    found: list[str] = []
    more, after = True, ""
    while more:
        page = await library.library.page(library.tenant, "src", after, 2)
        found += [head.document_id for head in page.heads]
        more, after = page.more, found[-1]
    assert found == sorted(set(names) - {"b.md"})
    everything = await library.library.page(library.tenant, "", "", 100)
    assert len(everything.heads) == 5
    assert not everything.more


async def test_a_refused_document_changes_nothing(library: Shelf) -> None:
    await library.library.put(library.tenant, A, b"good")
    with pytest.raises(InvalidInput):
        await library.library.put(library.tenant, A, b"---\naccess: no\n---\nbad")
    assert await library.texts() == ["good"]


async def test_publishers_of_one_tenant_take_turns(
    library: Shelf, another: Callable[[str], Shelf]
) -> None:
    shelves = [library, *(another(library.tenant) for _ in range(3))]
    done = await asyncio.gather(
        *(
            one.library.put(library.tenant, Header(f"{n}.md", "src"), paragraphs(4, str(n)))
            for n in range(4)
            for one in shelves
        )
    )
    assert sorted({put.epoch for put in done}) == [1, 2, 3, 4]
    assert [put.outcome for put in done].count(Outcome.ADDED) == 4
    assert len(await library.visible()) == 16


async def test_readers_never_see_two_revisions_nor_neither(library: Shelf) -> None:
    await library.library.put(library.tenant, A, paragraphs(3, "rev0"))
    stop, looks = asyncio.Event(), 0

    async def look() -> None:
        nonlocal looks
        while not stop.is_set():
            seen = await library.visible()
            assert len({passage.revision for passage in seen}) == 1
            assert len(seen) == seen[0].chunks
            looks += 1

    readers = [asyncio.create_task(look()) for _ in range(3)]
    for number in range(1, 30):
        count = 3 + number % 4
        # Now and then the document goes back to what it was.
        await library.library.put(library.tenant, A, paragraphs(count, f"rev{number % 7}"))
    stop.set()
    await asyncio.gather(*readers)
    assert looks > 30


STEPS = ("begin", "clear", "holds", "write", "retire", "count_live", "matches", "advance")


class Dies(Exception):
    pass


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", STEPS)
async def test_a_publisher_that_dies_at_any_step_leaves_the_old_state_or_the_new(
    library: Shelf, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool
) -> None:
    await library.library.put(library.tenant, A, paragraphs(5, "old"))
    await library.library.put(library.tenant, B, b"untouched")
    before = await library.texts()
    whole = getattr(Index, step)

    async def dying(*given: object) -> object:
        if after:
            await whole(*given)
        raise Dies

    monkeypatch.setattr(Index, step, dying)
    with pytest.raises(Dies):
        await library.library.put(library.tenant, A, paragraphs(3, "new"))
    monkeypatch.undo()
    if (step, after) != ("advance", True):
        assert await library.texts() == before
    await library.library.put(library.tenant, B, b"somebody else publishes")
    again = await library.library.put(library.tenant, A, paragraphs(3, "new"))
    seen = await library.visible()
    assert [passage.document_id for passage in seen] == ["a.md"] * 3 + ["b.md"]
    assert {passage.revision for passage in seen if passage.document_id == "a.md"} == {
        again.revision
    }
    assert await library.texts() == [f"Text {n} new." for n in range(3)] + [
        "somebody else publishes"
    ]


async def test_a_publisher_that_lost_its_lease_cannot_move_readers(
    library: Shelf, monkeypatch: pytest.MonkeyPatch, another: Callable[[str], Shelf]
) -> None:
    await library.library.put(library.tenant, A, b"old")
    other, whole = another(library.tenant), Index.count_live

    async def overtaken(*given: object) -> int:
        monkeypatch.setattr(Index, "count_live", whole)
        leases = library.library.leases
        await leases._redis.flushall()
        await other.library.put(library.tenant, B, b"faster")
        return await whole(*given)  # type: ignore[arg-type] # handed on as they came

    monkeypatch.setattr(Index, "count_live", overtaken)
    with pytest.raises(Conflict, match="another publisher took over"):
        await library.library.put(library.tenant, A, b"new")
    assert await library.texts() == ["old", "faster"]


async def test_the_write_that_moves_readers_is_conditional(library: Shelf) -> None:
    index, tenant = library.library.index, library.tenant
    await library.library.put(library.tenant, A, b"text")
    with pytest.raises(Conflict, match="moved the epoch") as refusal:
        await index.advance(tenant, 0, "late")
    assert refusal.value.reason == "EPOCH_MOVED"
    assert await index.epoch(tenant) == 1
