"""Events of a body that is split anywhere."""

import asyncio
import random
from collections.abc import AsyncIterator

import httpx2
import pytest

from providers.events import Events, Lines

BODY = (
    b": hello\n\ndata: one\r\n\r\nevent: kind\rid: 1\rdata:two\rdata:  three \xe2\x80\xa8\r\r"
    b"retry: 5\n\ndata\n\n"
)
DATA = ["one", "two\n three \u2028", "", ""]


async def parts(*told: bytes) -> AsyncIterator[bytes]:
    for part in told:
        yield part


async def read(body: AsyncIterator[bytes]) -> list[str]:
    events, found = Events(body), []
    while (data := await events.next()) is not None:
        found.append(data)
    return found


@pytest.mark.parametrize("seed", range(50))
async def test_events_are_the_same_however_their_bytes_are_split(seed: int) -> None:
    chance = random.Random(seed)
    edges = sorted(chance.choices(range(len(BODY) + 1), k=chance.randrange(30)))
    split = [BODY[a:b] for a, b in zip([0, *edges], [*edges, len(BODY)], strict=True)]
    assert await read(parts(*split)) == DATA


async def test_an_event_that_is_not_ended_is_none() -> None:
    assert await read(parts(b"data: one\n\ndata: two\n")) == ["one"]


async def test_what_is_no_text_is_told_wherever_it_stands() -> None:
    with pytest.raises(UnicodeDecodeError):
        await read(parts(b"data: one\n\nda\xffta: two\n\n"))


async def test_nothing_follows_the_last_event_and_the_body_is_read_to_its_end() -> None:
    body = parts(b"data: one\n\ndata: [DONE]\n\ndata: two\n\n", b"data: three\n\n")
    assert await read(body) == ["one"]
    assert await anext(body, None) is None


async def ends_badly() -> AsyncIterator[bytes]:
    yield b"data: one\n\ndata: [DONE]\n\n"
    raise httpx2.ReadError("cut")


async def test_a_body_that_is_cut_after_the_last_event_was_whole() -> None:
    assert await read(ends_badly()) == ["one"]


async def never_ends() -> AsyncIterator[bytes]:
    yield b"data: one\n\ndata: [DONE]\n\n"
    await asyncio.Event().wait()


async def test_a_body_that_does_not_end_is_left_after_the_last_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("providers.events.LINGERS", 0.01)
    assert await read(never_ends()) == ["one"]


def test_a_line_of_many_parts_is_one() -> None:
    lines = Lines()
    assert [lines.take(part) for part in (b"a", b"b", b"", b"c\r", b"\n", b"d\n")] == [
        *([], [], [], [b"abc"], [], [b"d"])
    ]
