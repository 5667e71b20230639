import asyncio
from collections.abc import Awaitable, Callable

import pytest

from chassis.errors import (
    Conflict,
    DeadlineExceeded,
    Exhausted,
    Forbidden,
    SluiceError,
    Unauthenticated,
    Unavailable,
)
from cli import patience
from cli.exits import Unreachable
from cli.patience import Patience

HASTY = (0.0,) * 8
DOWN = Unreachable("127.0.0.1:1")
OLD = Unauthenticated("old", reason="TOKEN_EXPIRED")


def failing(*failures: SluiceError) -> Callable[[], Awaitable[str]]:
    """A call that fails so often before it is answered."""
    left = list(failures)

    async def call() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return call


def late(embedded: int) -> DeadlineExceeded:
    return DeadlineExceeded("over", metadata={"embedded": str(embedded)})


def unheard(text: str) -> None:
    raise AssertionError(text)


async def test_an_outage_is_waited_out_and_told_once_by_all_who_wait() -> None:
    said: list[str] = []
    patient = Patience(said.append, HASTY)
    done = await asyncio.gather(*(patient.call(failing(DOWN, DOWN)) for _ in range(4)))
    assert done == ["done"] * 4
    assert said == [f"{DOWN.message}; trying again for up to 90 s"]
    assert await patient.call(failing(DOWN)) == "done"
    assert len(said) == 2


@pytest.mark.parametrize(
    "failure",
    [Conflict("another"), Exhausted("full"), DeadlineExceeded("busy", reason="INDEX_SLOW")],
)
async def test_what_passes_by_itself_is_waited_for_without_a_word(failure: SluiceError) -> None:
    assert await Patience(unheard, HASTY).call(failing(failure, failure)) == "done"


@pytest.mark.parametrize("failure", [Forbidden("no"), Unauthenticated("no", reason="BAD_TOKEN")])
async def test_what_never_works_is_not_tried_again(failure: SluiceError) -> None:
    with pytest.raises(type(failure), match="no"):
        await Patience(unheard, HASTY).call(failing(failure))


async def test_a_token_that_expired_is_replaced_once() -> None:
    assert await Patience(unheard, HASTY).call(failing(OLD)) == "done"
    with pytest.raises(Unauthenticated, match="old"):
        await Patience(unheard, HASTY).call(failing(OLD, OLD))


async def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST", 5.0)
    with pytest.raises(Exhausted, match="full"):
        await Patience(unheard, HASTY).call(failing(Exhausted("full", retry_after=6.0)))
    with pytest.raises(Unavailable):
        await Patience(lambda _: None, HASTY).call(failing(*[DOWN] * (len(HASTY) + 1)))


async def test_a_call_that_was_under_way_for_long_is_tried_again_like_any_other() -> None:
    now, tries = 0.0, 0

    async def call() -> str:
        nonlocal now, tries
        tries += 1
        now += patience.LONGEST + 10 if tries < 4 else patience.LONGEST / 2
        raise DOWN

    with pytest.raises(Unreachable):
        await Patience(lambda _: None, HASTY, lambda: now).call(call)
    assert tries == 6


async def test_a_document_is_sent_again_as_long_as_it_comes_further() -> None:
    put = failing(late(0), late(10), DOWN, late(20))
    assert await Patience(lambda _: None, HASTY).put(put) == "done"


@pytest.mark.parametrize("further", [late(10), late(3), DeadlineExceeded("over")])
async def test_a_document_that_comes_no_further_is_given_up(further: DeadlineExceeded) -> None:
    with pytest.raises(DeadlineExceeded, match="over"):
        await Patience(unheard, HASTY).put(failing(late(10), further))
