"""Questions' vectors: asked once, kept, and shared by whoever asks the same at once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from capacity import Workload
from chassis.errors import DeadlineExceeded, SluiceError, Unavailable
from services.retrieve.embed import Embeddings
from services.retrieve.question import Query


@dataclass
class Model:
    """Answers when it is let go, and fails as it is told."""

    failures: list[SluiceError] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        self.asked += inputs
        await self.go.wait()
        if self.failures:
            raise self.failures.pop(0)
        return [[float(len(text)), 1.0] for text in inputs]


def query(text: str) -> Query:
    return Query(text, 1)


async def until_all_wait() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_question_is_embedded_once_while_it_is_remembered() -> None:
    model = Model()
    model.go.set()
    embeddings = Embeddings(model, kept=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        assert list(await embeddings.vector(query(text))) == [1.0, 1.0]
    assert model.asked == ["a", "b", "c", "b"]


async def test_nothing_is_remembered_where_nothing_may_be() -> None:
    model = Model()
    model.go.set()
    embeddings = Embeddings(model, kept=0)
    for _ in range(2):
        await embeddings.vector(query("a"))
    assert model.asked == ["a", "a"]


async def test_equal_questions_at_once_are_one_call() -> None:
    model = Model()
    embeddings = Embeddings(model, kept=8)
    asking = [asyncio.create_task(embeddings.vector(query(text))) for text in "aabab"]
    await until_all_wait()
    model.go.set()
    assert len(await asyncio.gather(*asking)) == 5
    assert sorted(model.asked) == ["a", "b"]


async def test_who_leaves_takes_nobody_along() -> None:
    model = Model()
    embeddings = Embeddings(model, kept=8)
    first, second = (asyncio.create_task(embeddings.vector(query("a"))) for _ in range(2))
    await until_all_wait()
    first.cancel()
    await until_all_wait()
    model.go.set()
    assert list(await second) == [1.0, 1.0]
    assert model.asked == ["a", "a"]
    assert first.cancelled()


async def test_an_outage_is_told_to_all_who_wait_and_not_remembered() -> None:
    model = Model([Unavailable("away", reason="PROVIDER_UNAVAILABLE")])
    embeddings = Embeddings(model, kept=8)
    asking = [asyncio.create_task(embeddings.vector(query("a"))) for _ in range(3)]
    await until_all_wait()
    model.go.set()
    failures = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(failure) for failure in failures] == [Unavailable] * 3
    assert len(model.asked) == 1
    assert list(await embeddings.vector(query("a"))) == [1.0, 1.0]


async def test_a_deadline_is_that_of_who_asked_first_alone() -> None:
    model = Model([DeadlineExceeded("late")])
    embeddings = Embeddings(model, kept=8)
    first, second = (asyncio.create_task(embeddings.vector(query("a"))) for _ in range(2))
    await until_all_wait()
    model.go.set()
    with pytest.raises(DeadlineExceeded):
        await first
    assert list(await second) == [1.0, 1.0]


async def test_who_waits_for_an_answer_does_not_wait_for_batch_works_turn() -> None:
    model = Model([])
    embeddings = Embeddings(model, kept=8)
    batch = asyncio.create_task(embeddings.vector(query("a"), Workload.BATCH))
    asked = asyncio.create_task(embeddings.vector(query("a")))
    await until_all_wait()
    assert model.asked == ["a", "a"]
    model.go.set()
    assert list(await batch) == list(await asked) == [1.0, 1.0]
