import asyncio
from contextlib import aclosing

import pytest

from services.generate.audience import ROOM, Audience, Delta, Event, Final, Retracted, Withdrawal
from services.generate.delivery import deliver
from services.generate.result import Result
from services.generate.task import Task
from services.generate.verdict import (
    Acceptance,
    Extractive,
    ExtractiveReason,
    Generated,
    Unavailable,
    UnavailableReason,
    Verdict,
)
from tests.generate.asking import TASK

ACCEPTED = Generated(Acceptance.ACCEPTED)


async def seen(audience: Audience) -> list[Event]:
    audience.end()
    return [event async for event in audience.events()]


def result(text: str, verdict: Verdict = ACCEPTED) -> Result:
    return Result(verdict, text)


async def test_what_was_not_shown_yet_comes_with_the_verdict() -> None:
    audience = Audience()
    await audience.show("One. ")
    await audience.show("")
    await audience.conclude(result("One. Two."))
    assert await seen(audience) == [Delta("One. Two."), Final(result("One. Two."))]


async def test_the_first_text_and_the_verdict_wait_for_no_pace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.generate.audience.PACE", 3_600)
    audience = Audience()
    async with aclosing(audience.events()) as events, asyncio.timeout(5):
        await audience.show("One. ")
        assert await anext(events) == Delta("One. ")
        coming = asyncio.ensure_future(anext(events))
        for piece in ("Two. ", "Three. "):
            await audience.show(piece)
        await audience.conclude(result("One. Two. Three. Four."))
        # What came meanwhile comes joined.
        assert await coming == Delta("Two. Three. Four.")
        assert await anext(events) == Final(result("One. Two. Three. Four."))


async def test_nothing_is_shown_after_it_was_taken_back_and_that_once() -> None:
    audience = Audience()
    await audience.show("One.")
    audience.withdraw(Withdrawal.DEADLINE)
    audience.withdraw(Withdrawal.REFUSED)
    await audience.show("Two.")
    quoted = result("Three.", Extractive(ExtractiveReason.DEADLINE))
    await audience.conclude(quoted)
    expected = [Delta("One."), Retracted(Withdrawal.DEADLINE), Final(quoted)]
    assert await seen(audience) == expected


async def test_nothing_is_taken_back_where_nothing_was_shown() -> None:
    audience = Audience()
    audience.withdraw(Withdrawal.INTERRUPTED)
    gone = result("", Unavailable(UnavailableReason.MODEL_UNAVAILABLE))
    await audience.conclude(gone)
    assert await seen(audience) == [Final(gone)]


async def test_an_answer_that_is_not_what_was_shown_takes_that_back() -> None:
    audience = Audience()
    await audience.show("One.")
    await audience.conclude(result("Two."))
    expected = [Delta("One."), Retracted(Withdrawal.INVALID_OUTPUT), Final(result("Two."))]
    assert await seen(audience) == expected


class Endless:
    """Shows one piece after another, and counts them."""

    def __init__(self) -> None:
        self.shown = 0
        self.filled = asyncio.Event()
        self.ended = asyncio.Event()

    async def answer(self, task: Task, audience: Audience | None = None) -> Result:
        assert audience is not None
        try:
            while True:
                await audience.show("x")
                self.shown += 1
                if self.shown == 2 * ROOM:
                    self.filled.set()
        finally:
            self.ended.set()


async def test_a_reader_who_does_not_read_stops_the_work_and_one_who_leaves_ends_it() -> None:
    endless = Endless()
    async with aclosing(deliver(endless, TASK)) as events:
        assert isinstance(await anext(events), Delta)
        # The work goes on by itself as far as there is room.
        await asyncio.wait_for(endless.filled.wait(), 5)
        assert not endless.ended.is_set()
    assert endless.ended.is_set()
    assert endless.shown <= 2 * ROOM + 1


class Broken:
    async def answer(self, task: Task, audience: Audience | None = None) -> Result:
        raise RuntimeError("a bug")


async def test_a_bug_ends_the_stream_with_it() -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        async with aclosing(deliver(Broken(), TASK)) as events:
            assert [event async for event in events] == []


class Long:
    async def answer(self, task: Task, audience: Audience | None = None) -> Result:
        assert audience is not None
        pieces = [f"{at} " for at in range(3 * ROOM)]
        for piece in pieces:
            await audience.show(piece)
        return result("".join(pieces))


async def test_a_slow_reader_loses_nothing() -> None:
    async with aclosing(deliver(Long(), TASK)) as events:
        read = [event async for event in events]
    assert "".join(event.text for event in read if isinstance(event, Delta)) == "".join(
        f"{at} " for at in range(3 * ROOM)
    )
    assert [type(event) for event in read] == [Delta] * (len(read) - 1) + [Final]
