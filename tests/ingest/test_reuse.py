"""What is embedded once keeps its vector, wherever its text goes within a tenant."""

from collections.abc import Callable

from qdrant_client import models

from corpus.collection import DENSE
from corpus.points import point_id
from services.ingest.index import BATCH_ROWS, HASHES
from services.ingest.library import Outcome
from services.ingest.prepare import Header
from tests.ingest.parts import Shelf

A, B = Header("a.md", "src"), Header("b.md", "src")
PARAGRAPHS = 50


def document(*, edited: int = -1, front: str = "") -> bytes:
    """A title and fifty sections of one paragraph each, of which one may be edited."""
    sections = (
        f"## Part {n}\n\nParagraph {n} {'was edited' if n == edited else 'stands'}.\n"
        for n in range(PARAGRAPHS)
    )
    return (front + "# Rules\n\n" + "\n".join(sections)).encode()


async def vectors(shelf: Shelf) -> dict[str, list[float]]:
    """The vector of every text that readers see now."""
    ids = {passage.text for passage in await shelf.visible()}
    mine = models.FieldCondition(key="tenant_id", match=models.MatchValue(value=shelf.tenant))
    records, _ = await shelf.client.scroll(
        shelf.alias, models.Filter(must=[mine]), limit=10_000, with_vectors=[DENSE]
    )
    found = {}
    for record in records:
        payload = record.payload or {}
        if payload and "blocks" in payload and isinstance(record.vector, dict):
            text = "\n\n".join(block["text"] for block in payload["blocks"])
            if text in ids:
                found[text] = record.vector[DENSE]
    return found  # type: ignore[return-value]  # DENSE is a plain vector


async def ids(shelf: Shelf) -> set[str]:
    """The points that readers see now."""
    return {point_id(passage, str(passage.chunk)) for passage in await shelf.visible()}


async def test_one_edited_paragraph_of_fifty_is_one_embedding(library: Shelf) -> None:
    first = await library.library.put(library.tenant, A, document())
    before, names = await vectors(library), await ids(library)
    second = await library.library.put(library.tenant, A, document(edited=20))
    after = await vectors(library)
    assert len(names) == PARAGRAPHS
    assert names.isdisjoint(await ids(library))
    assert (first.embedded, first.reused) == (PARAGRAPHS, 0)
    assert (second.outcome, second.embedded, second.reused) == (Outcome.UPDATED, 1, PARAGRAPHS - 1)
    kept = before.keys() & after.keys()
    assert len(kept) == PARAGRAPHS - 1
    assert all(before[text] == after[text] for text in kept)


async def test_a_document_of_many_rows_is_unchanged_the_second_time(library: Shelf) -> None:
    text = "# T\n\n" + "\n\n".join(f"## N{n}\n\nText {n}." for n in range(BATCH_ROWS + 10))
    first = await library.library.put(library.tenant, A, text.encode())
    again = await library.library.put(library.tenant, A, text.encode())
    assert (first.chunks, first.embedded) == (BATCH_ROWS + 10, BATCH_ROWS + 10)
    assert (again.outcome, again.embedded, again.epoch) == (Outcome.UNCHANGED, 0, first.epoch)
    assert await library.stored() == first.chunks


async def test_a_change_of_metadata_embeds_nothing(library: Shelf) -> None:
    await library.library.put(
        library.tenant, A, document(front="---\npublication_state: draft\n---\n")
    )
    assert all(passage.state.value == "draft" for passage in await library.visible())
    done = await library.library.put(library.tenant, A, document())
    assert (done.outcome, done.embedded, done.reused) == (Outcome.UPDATED, 0, PARAGRAPHS)
    assert [passage.state.value for passage in await library.visible()] == ["published"] * 50


async def test_a_renamed_document_is_there_under_its_new_name_with_its_old_vectors(
    library: Shelf,
) -> None:
    await library.library.put(library.tenant, A, document())
    done = await library.library.put(library.tenant, B, document())
    await library.library.reconcile(library.tenant, "src", ["b.md"], allow_empty=False)
    assert (done.outcome, done.embedded, done.reused) == (Outcome.ADDED, 0, PARAGRAPHS)
    assert {passage.document_id for passage in await library.visible()} == {"b.md"}


async def test_a_document_that_comes_back_has_its_vectors_still(library: Shelf) -> None:
    await library.library.put(library.tenant, A, document())
    await library.library.delete(library.tenant, "a.md")
    assert (await library.library.put(library.tenant, A, document())).embedded == 0


async def test_a_text_that_a_document_repeats_is_embedded_once(library: Shelf) -> None:
    done = await library.library.put(library.tenant, A, b"# T\n\n## N\n\nx.\n\n## N\n\nx.\n")
    assert (done.chunks, done.embedded, done.reused) == (2, 1, 1)
    assert len(library.embedder.inputs) == 1


async def test_a_text_with_more_rows_than_one_reply_holds_hides_no_other(library: Shelf) -> None:
    common, rare = "\n\n## N\n\nsame.", "\n\n## N\n\nrare."
    await library.library.put(library.tenant, A, f"# T{common * (HASHES + 10)}{rare}".encode())
    done = await library.library.put(library.tenant, B, f"# T{rare}{common}".encode())
    assert (done.embedded, done.reused) == (0, 2)


async def test_no_vector_comes_from_another_tenant(
    library: Shelf, another: Callable[[str], Shelf]
) -> None:
    other = another(f"{library.tenant}-other")
    await other.library.put(other.tenant, A, document())
    assert (await library.library.put(library.tenant, A, document())).embedded == PARAGRAPHS
