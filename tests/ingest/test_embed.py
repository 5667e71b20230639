from collections.abc import Sequence

import pytest

from capacity import Workload
from chassis import deadlines
from chassis.deadlines import Deadline
from chassis.errors import (
    DeadlineExceeded,
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


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "PAUSES", (0.001, 0.001))


async def test_calls_stay_within_both_limits_and_keep_the_order() -> None:
    provider = Provider()
    vectors = await BATCHING.embed(provider, chunks(1, 2, 3, 4, 6, 5, 12, 1))
    assert [tokens for _, tokens, _ in provider.asked] == [[1, 2, 3], [4, 6], [5], [12], [1]]
    assert {workload for _, _, workload in provider.asked} == {Workload.BATCH}
    assert [list(vector) for vector in vectors] == [[float(n), 0.5] for n in range(8)]


async def test_nothing_to_embed_is_no_call() -> None:
    provider = Provider()
    assert await BATCHING.embed(provider, []) == []
    assert provider.asked == []


async def test_an_input_over_the_models_limit_is_an_error_and_never_sent() -> None:
    provider = Provider()
    with pytest.raises(Internal, match="13 tokens in one input where 12"):
        await BATCHING.embed(provider, chunks(13))
    assert provider.asked == []


@pytest.mark.parametrize("failure", [Unavailable("down"), Exhausted("full", retry_after=0.001)])
async def test_a_call_is_repeated_while_provider_or_allowance_fail(failure: SluiceError) -> None:
    provider = Provider(failure, failure)
    assert len(await BATCHING.embed(provider, chunks(1))) == 1
    assert len(provider.asked) == 3


async def test_a_provider_that_stays_down_is_given_up() -> None:
    provider = Provider(*[Unavailable("down")] * 9)
    with pytest.raises(Unavailable, match="down"):
        await BATCHING.embed(provider, chunks(1))
    assert len(provider.asked) == 3


async def test_a_wait_that_reaches_beyond_the_deadline_is_not_begun() -> None:
    deadlines.enter(Deadline.after(5))
    provider = Provider(Exhausted("full", retry_after=60))
    with pytest.raises(Exhausted, match="full"):
        await BATCHING.embed(provider, chunks(1))
    assert len(provider.asked) == 1


async def test_a_document_that_takes_too_long_is_told_how_far_it_came() -> None:
    class Slow(Provider):
        async def embed(
            self, inputs: Sequence[str], tokens: Sequence[int], workload: Workload
        ) -> list[list[float]]:
            if self.asked:
                left.append(deadlines.within(60).remaining())
                raise DeadlineExceeded("over")
            return await super().embed(inputs, tokens, workload)

    left: list[float] = []
    deadlines.enter(Deadline.after(20))
    with pytest.raises(DeadlineExceeded, match=r"embedded 3 of 5 passages .* divide the document"):
        await BATCHING.embed(Slow(), chunks(1, 1, 1, 1, 1))
    assert left[0] < 20 - embed.SPARE


async def test_what_will_never_work_is_not_repeated() -> None:
    provider = Provider(InvalidInput("no", field="tokens"))
    with pytest.raises(InvalidInput):
        await BATCHING.embed(provider, chunks(1))
    assert len(provider.asked) == 1
