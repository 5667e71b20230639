import pytest

from chassis.errors import ContractMismatch, DeadlineExceeded, Internal, Unavailable
from cli.patience import Patience
from corpus import collection
from corpus.points import Key, point_id
from corpus.profile import profile
from services.ingest import index as adapter
from services.ingest.index import BATCH_BYTES, BATCH_ROWS, Index, Row, batches
from services.ingest.prepare import Header
from tests.ingest import parts
from tests.ingest.parts import CHUNKING, PROFILE, Part, Shelf, preparation


def rows(count: int, text: str) -> list[Row]:
    passages = preparation().prepare("t", Header("a.txt", "s"), text.encode()).passages
    return [Row(str(n), passages[0], [0.5] * PROFILE.dimensions) for n in range(count)]


def test_batches_are_bounded_by_rows_and_by_bytes() -> None:
    assert [len(batch) for batch in batches(rows(BATCH_ROWS + 1, "a"))] == [BATCH_ROWS, 1]
    wide = rows(20, "a" + " " * 16_000 + "b")
    sizes = [len(batch) for batch in batches(wide * 40)]
    assert sum(sizes) == 800
    assert max(sizes) <= BATCH_BYTES // 16_000
    assert list(batches([])) == []


async def test_what_was_changed_behind_our_back_does_not_match(library: Shelf) -> None:
    await library.library.put(library.tenant, Header("a.md", "s"), b"text")
    (passage,) = await library.visible()
    records, _ = await library.client.scroll(library.alias, limit=10_000)
    (mine,) = [r for r in records if (r.payload or {}).get(Key.TENANT) == library.tenant]
    row = Row(str(mine.id), passage, [])
    assert await library.library.index.matches([row])
    await library.client.set_payload(library.alias, {Key.TITLE.value: "other"}, [mine.id])
    assert not await library.library.index.matches([row])


async def test_a_missing_row_does_not_match(library: Shelf) -> None:
    await library.library.put(library.tenant, Header("a.md", "s"), b"text")
    (passage,) = await library.visible()
    missing = Row("00000000-0000-4000-8000-000000000000", passage, [])
    assert not await library.library.index.matches([missing])


@pytest.mark.parametrize("other", ["text-embedding-3-small", "nomic-embed-text"])
async def test_another_profile_stops_every_write(library: Shelf, other: str) -> None:
    index = Index(library.qdrant, library.alias, profile(other), CHUNKING.version)
    with pytest.raises(ContractMismatch, match=f"is {PROFILE.id}, expected {other}"):
        await index.ensure()


async def test_another_chunking_stops_every_write(library: Shelf) -> None:
    index = Index(library.qdrant, library.alias, PROFILE, "blocks0")
    with pytest.raises(ContractMismatch, match=f"is {CHUNKING.version}, expected blocks0"):
        await index.ensure()


async def test_an_index_that_is_down_is_unavailable_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory, unused_port: int
) -> None:
    node = parts.node(tmp_path_factory.mktemp("own-qdrant"), unused_port)
    qdrant = collection.connect(node.url)
    index = Index(qdrant, "sluice", PROFILE, CHUNKING.version)
    with pytest.raises(Unavailable) as refusal:
        await index.ensure()
    assert refusal.value.reason == "INDEX_UNAVAILABLE"
    node.start()
    try:
        await Patience(lambda _: None, (0.05,) * 300).call(index.ensure)
        assert await index.epoch("t") == 0
    finally:
        node.kill()
        await qdrant.close()


async def test_an_index_that_stalls_is_given_up_in_time(
    library: Shelf, node: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "CALL_SECONDS", 0.2)
    node.stop()
    try:
        with pytest.raises(DeadlineExceeded) as refusal:
            await library.library.index.epoch(library.tenant)
    finally:
        node.go_on()
    assert refusal.value.reason == "INDEX_SLOW"


async def test_what_the_index_refuses_is_ours_to_mend_and_hides_its_words(library: Shelf) -> None:
    await library.library.put(library.tenant, Header("a.md", "s"), b"text")
    (passage,) = await library.visible()
    with pytest.raises(Internal) as refusal:
        await library.library.index.write([Row(point_id(passage, "0"), passage, [0.5])])
    assert refusal.value.reason == "INDEX_REFUSED"
    assert "imension" not in refusal.value.message
