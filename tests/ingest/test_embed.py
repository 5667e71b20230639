from collections.abc import Sequence

import pytest

from capacity import Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import (
    Exhausted,
    Internal,
    InvalidInput,
    SluiceError,
    Unavailable,
)
from services.ingest import embed
from services.ingest.chunk import Chunk
from services.ingest.document import Section
from services.ingest.embed import Batching

BATCHING = Batching(inputs=3, tokens=10, input_limit=12)


def chunks(*tokens: int) -> list[Chunk]:
    section = Section("s", (), ())
    return [Chunk(section, (), f"text {n}", count) for n, count in enumerate(tokens)]


class Provider:
    """Fails as told, then answers."""

    def __init__(self, *failures: SluiceError) -> None:
        self.failures = list(failures)
        self.asked: list[tuple[list[str], list[int], Workload]] = []

    async def embed(
        self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
    ) -> list[list[float]]:
        self.asked.append((list(inputs), list(tokens), workload))
        if self.failures:
            raise self.failures.pop(0)
        return [[float(text.split()[1]), 0.5] for text in inputs]


async def embedded(provider: Provider, *tokens: int) -> list[list[float]]:
    return [
        list(vector)
        async for vectors in BATCHING.embed(provider, chunks(*tokens))
        for vector in vectors
    ]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "PAUSES", (0.001, 0.001))


async def test_calls_stay_within_both_limits_and_keep_the_order() -> None:
    provider = Provider()
    vectors = await embedded(provider, 1, 2, 3, 4, 6, 5, 12, 1)
    assert [tokens for _, tokens, _ in provider.asked] == [[1, 2, 3], [4, 6], [5], [12], [1]]
    assert {workload for _, _, workload in provider.asked} == {Workload.BATCH}
    assert vectors == [[float(n), 0.5] for n in range(8)]


async def test_nothing_to_embed_is_no_call() -> None:
    provider = Provider()
    assert await embedded(provider) == []
    assert provider.asked == []


async def test_an_input_over_the_models_limit_is_an_error_and_never_sent() -> None:
    provider = Provider()
    with pytest.raises(Internal, match="13 tokens in one input where 12"):
        await embedded(provider, 13)
    assert provider.asked == []


@pytest.mark.parametrize("failure", [Unavailable("down"), Exhausted("full", retry_after=0.001)])
async def test_a_call_is_repeated_while_provider_or_allowance_fail(failure: SluiceError) -> None:
    provider = Provider(failure, failure)
    assert len(await embedded(provider, 1)) == 1
    assert len(provider.asked) == 3


async def test_a_provider_that_stays_down_is_given_up() -> None:
    provider = Provider(*[Unavailable("down")] * 9)
    with pytest.raises(Unavailable, match="down"):
        await embedded(provider, 1)
    assert len(provider.asked) == 3


async def test_a_wait_that_reaches_beyond_the_deadline_is_not_begun() -> None:
    deadlines.enter(Deadline.after(5))
    provider = Provider(Exhausted("full", retry_after=60))
    with pytest.raises(Exhausted, match="full"):
        await embedded(provider, 1)
    assert len(provider.asked) == 1


async def test_embedding_ends_before_its_request_does() -> None:
    class Late(Provider):
        async def embed(
            self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
        ) -> list[list[float]]:
            left.append(deadlines.within(60).remaining())
            return await super().embed(inputs, tokens, workload)

    left: list[float] = []
    deadlines.enter(Deadline.after(20))
    assert len(await embedded(Late(), 1, 1, 1, 1, 1)) == 5
    assert len(left) == 2
    assert max(left) < 20 - embed.SPARE
    assert deadlines.within(60).remaining() > 20 - embed.SPARE


async def test_what_will_never_work_is_not_repeated() -> None:
    provider = Provider(InvalidInput("no", field="tokens"))
    with pytest.raises(InvalidInput):
        await embedded(provider, 1)
    assert len(provider.asked) == 1
