"""By embeddings, by words, by both: what is found, and in which space it is told."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from qdrant_client import models

from capacity import Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import DataViolation, Exhausted, InvalidInput, SluiceError, Unavailable
from corpus.points import Key, Kind, StoredBlock, StoredPassage, to_payload
from services.retrieve.embed import Embeddings
from services.retrieve.fuse import Fusion, Space
from services.retrieve.index import Index, Point
from services.retrieve.search import Mode, Ranking, Result, Search
from tests.retrieve.engine import PASSAGE, Shelf, passage
from tests.retrieve.seeker import ANA, ask, asked, axis, ids, search

POINT = "11111111-1111-4111-8111-111111111111"


def saying(text: str, chunk: int) -> StoredPassage:
    return passage(chunk=chunk, blocks=(StoredBlock(0, 0, Kind.PARAGRAPH, 0, len(text), text),))


async def three(shelf: Shelf) -> list[str]:
    """Near and silent, far and telling, both by halves."""
    names = await shelf.put(
        (saying("Nothing of it.", 1), axis(0)),
        (saying("Drain the queue, drain it whole.", 2), axis(1)),
        (saying("Some queue or other, and much else besides.", 3), [0.9, 0.44, *axis(2)[2:]]),
    )
    await shelf.move_to("acme", 1)
    return names


async def test_each_mode_finds_by_its_own_and_says_so(shelf: Shelf) -> None:
    near, telling, both = await three(shelf)
    wanted = asked(question="How to drain the queue?")
    dense = await ask(shelf, wanted=wanted)
    assert (dense.space, ids(dense)) == (Space.COSINE, [near, both, telling])
    sparse = await ask(shelf, wanted=replace(wanted, mode=Mode.SPARSE))
    assert (sparse.space, ids(sparse)) == (Space.BM25, [telling, both])
    fused = await ask(shelf, wanted=replace(wanted, mode=Mode.FUSED))
    assert (fused.space, set(ids(fused))) == (Space.MIN_MAX, {near, telling, both})
    ranks = Ranking(Fusion(Space.RRF, 0.5), 50, {})
    assert (await ask(shelf, wanted=replace(wanted, mode=Mode.FUSED), ranking=ranks)).space is (
        Space.RRF
    )


async def test_every_passage_of_an_embedded_question_says_its_cosine(shelf: Shelf) -> None:
    near, telling, both = await three(shelf)
    wanted = asked(question="drain", mode=Mode.FUSED)
    # So few by each that the telling one is found by its words alone.
    found = await ask(shelf, wanted=replace(wanted, top_k=2), ranking=Ranking(HALF, 2, {}))
    cosines = {one.id: one.cosine for one in found.passages}
    assert cosines == pytest.approx({near: 1.0, telling: 0.0}, abs=1e-6)
    alone = await ask(shelf, wanted=replace(wanted, mode=Mode.SPARSE))
    assert [one.cosine for one in alone.passages] == [None]
    assert both not in ids(alone)


HALF = Fusion(Space.MIN_MAX, 0.5)


async def test_a_question_without_a_word_is_looked_for_as_far_as_it_can_be(shelf: Shelf) -> None:
    names = await three(shelf)
    nothing = await ask(shelf, wanted=asked(question="?!", mode=Mode.SPARSE))
    assert (nothing.passages, nothing.space, nothing.epoch) == ((), Space.BM25, 1)
    found = await ask(shelf, wanted=asked(question="?!", mode=Mode.FUSED))
    assert (len(found.passages), found.space) == (len(names), Space.MIN_MAX)


async def test_diversity_prefers_what_was_not_said_yet(shelf: Shelf) -> None:
    best, twin, other = await shelf.put(
        (passage(chunk=1), [1.0, 0.1, *axis(2)[2:]]),
        (passage(chunk=2), [1.0, 0.12, *axis(2)[2:]]),
        (passage(chunk=3), [0.8, -0.6, *axis(2)[2:]]),
    )
    await shelf.move_to("acme", 1)
    for mode in (Mode.DENSE, Mode.FUSED):
        wanted = asked(top_k=2, mode=mode)
        assert ids(await ask(shelf, wanted=wanted)) == [best, twin]
        assert ids(await ask(shelf, wanted=replace(wanted, diversity=0.6))) == [best, other]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("diversity", [0.0, 0.5])
async def test_one_violation_fails_every_kind_of_search(
    shelf: Shelf, mode: Mode, diversity: float
) -> None:
    await shelf.put((passage(chunk=7), axis(0)))
    spoiled = {**to_payload(PASSAGE), Key.ACCESS.value: ["public", "restricted"]}
    await shelf.put_raw((POINT, spoiled, axis(1)))
    await shelf.move_to("acme", 1)
    with pytest.raises(DataViolation) as violation:
        await ask(shelf, wanted=asked(question="disk", mode=mode, diversity=diversity))
    assert violation.value.metadata["point_id"] == POINT


@pytest.mark.parametrize("mode", Mode)
async def test_a_search_sees_the_epoch_that_is_current_when_it_looks(
    shelf: Shelf, mode: Mode
) -> None:
    old, new = await shelf.put(
        (passage(revision="r1", valid_to=2), axis(0)),
        (passage(revision="r2", valid_from=2), axis(0)),
    )
    await shelf.move_to("acme", 1)
    once = search(shelf, axis(0))
    wanted = asked(question="disk", mode=mode)
    assert ids(await once.run(wanted, ANA)) == [old]
    await shelf.move_to("acme", 2)
    found = await once.run(wanted, ANA)
    assert (ids(found), found.epoch) == ([new], 2)


@dataclass(slots=True)
class Failing:
    """The embedder: it always fails so."""

    failure: SluiceError

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        raise self.failure


async def without_model(shelf: Shelf, failure: SluiceError, mode: Mode) -> Result:
    index = Index(shelf.qdrant, shelf.alias, shelf.profile)
    embeddings = Embeddings(Failing(failure), kept=8)
    usual = Search(index, embeddings, shelf.profile, lambda _text: 1, Ranking(HALF, 50, {}))
    return await usual.run(asked(question="drain", mode=mode), ANA)


DOWN = Unavailable("away", reason="PROVIDER_UNAVAILABLE")


async def test_without_the_model_words_alone_are_searched_and_that_is_told(shelf: Shelf) -> None:
    _, telling, _ = await three(shelf)
    found = await without_model(shelf, DOWN, Mode.FUSED)
    assert (found.space, ids(found)) == (Space.BM25, [telling])
    assert ids(await without_model(shelf, DOWN, Mode.SPARSE)) == [telling]


@dataclass(slots=True)
class Hanging:
    """A model that takes a question and never answers."""

    left: int = 0

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        try:
            await asyncio.Event().wait()
        finally:
            self.left += 1
        return []


async def test_a_model_that_hangs_leaves_time_to_search_by_words(shelf: Shelf) -> None:
    _, telling, _ = await three(shelf)
    model = Hanging()
    usual = replace(search(shelf, axis(0)), embeddings=Embeddings(model, kept=8))
    deadlines.enter(Deadline.after(2))
    found = await usual.run(asked(question="drain", mode=Mode.FUSED), ANA)
    assert (found.space, ids(found), model.left) == (Space.BM25, [telling], 1)


async def test_who_asks_for_embeddings_gets_no_other_search(shelf: Shelf) -> None:
    await three(shelf)
    with pytest.raises(Unavailable) as failed:
        await without_model(shelf, DOWN, Mode.DENSE)
    assert failed.value.reason == "EMBEDDING_UNAVAILABLE"


@pytest.mark.parametrize("mode", [Mode.DENSE, Mode.FUSED])
async def test_a_spent_allowance_is_told_and_never_gone_around(shelf: Shelf, mode: Mode) -> None:
    await three(shelf)
    with pytest.raises(Exhausted):
        await without_model(shelf, Exhausted("spent", reason="CAPACITY_EXHAUSTED"), mode)


async def test_only_what_is_embedded_has_the_models_limit(shelf: Shelf) -> None:
    _, telling, _ = await three(shelf)
    found = replace(search(shelf, axis(0)), count=lambda _text: 1_000)
    wanted = asked(question="drain")
    with pytest.raises(InvalidInput):
        await found.run(replace(wanted, mode=Mode.FUSED), ANA)
    assert ids(await found.run(replace(wanted, mode=Mode.SPARSE), ANA)) == [telling]


async def test_a_passage_removed_meanwhile_is_left_out(shelf: Shelf) -> None:
    near, telling, both = await three(shelf)
    found = search(shelf, axis(0))
    clearing: Any = Removing(found.index, shelf, telling)
    found = replace(found, index=clearing)
    result = await found.run(asked(question="drain", mode=Mode.FUSED), ANA)
    assert set(ids(result)) == {near, both}


@dataclass(frozen=True, slots=True)
class Removing:
    """An index in which somebody clears up between the search and the reading."""

    index: Index
    shelf: Shelf
    removed: str

    def __getattr__(self, name: str) -> object:
        return getattr(self.index, name)

    async def fetch(self, point_ids: Sequence[str], *, with_vectors: bool) -> list[Point]:
        selected = models.PointIdsList(points=[self.removed])
        await self.shelf.client.delete(self.shelf.alias, selected, wait=True)
        return await self.index.fetch(point_ids, with_vectors=with_vectors)
