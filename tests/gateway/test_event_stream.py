"""The stream of events by itself: how it is written, kept alive and ended."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from chassis.errors import Forbidden, Unavailable
from gateway import event_stream
from gateway.event_stream import Ask, EventStream, encoded, wants_events
from gateway.telling import Delta, Event, Retraction, RetractionReason, Stage, Tell
from sluice.evidence.v1.evidence_pb2 import Source
from tests.gateway.house import Told, events_in


@dataclass
class Client:
    """Takes in what is sent, as long as it has not `left`."""

    sent: list[Message] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    reads: bool = True

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        self.changed.set()
        if not self.reads:
            await asyncio.Event().wait()

    async def hear(self, ask: Ask) -> None:
        await EventStream(ask, "the-request")({"type": "http"}, self.receive, self.send)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    async def told(self) -> list[Told]:
        return await parsed([self.body])


async def parsed(pieces: list[bytes]) -> list[Told]:
    async def incoming() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [event async for event in events_in(incoming())]


TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\r\n\u2028\u2029\x85\x0b\x1c :"))


@given(st.lists(TEXT, max_size=5), st.data())
def test_any_text_in_any_pieces_comes_out_as_it_went_in(
    texts: list[str], data: st.DataObject
) -> None:
    raw = b"".join(encoded(Delta(text)) for text in texts)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)), max_size=8)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    told = asyncio.run(parsed(pieces))
    assert told == [Told("delta", {"text": text}) for text in texts]


@given(TEXT)
def test_readers_that_cut_lines_as_unicode_does_see_the_same_lines(text: str) -> None:
    raw = encoded(Delta(text))
    assert raw.decode().splitlines() == raw.decode("ascii").removesuffix("\n").split("\n")
    assert raw.startswith(b"event: delta\ndata: ")


def test_each_kind_of_event_is_written_as_published() -> None:
    kinds: list[tuple[Event[Source], bytes]] = [
        (Stage("retrieve"), b'event: stage\ndata: {"stage":"retrieve","milliseconds":null}\n\n'),
        (
            Stage("retrieve", 0.0123456),
            b'event: stage\ndata: {"stage":"retrieve","milliseconds":12.346}\n\n',
        ),
        (
            Retraction(RetractionReason.INTERRUPTED),
            b'event: retract\ndata: {"reason":"INTERRUPTED"}\n\n',
        ),
    ]
    for event, written in kinds:
        assert encoded(event) == written


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ([], False),
        (["*/*"], False),
        (["application/json"], False),
        (["text/event-stream"], True),
        (["Text/Event-Stream ; charset=utf-8"], True),
        (["application/json, text/event-stream"], True),
        (["text/event-stream;q=0.5, application/json"], False),
        (["application/json;q=0.5", "text/event-stream"], True),
        (["text/event-stream;q=0"], False),
        (["text/event-stream; q=0.000"], False),
        (["text/event-stream;q=x"], True),
        (["text/event-streams"], False),
        ([",;,"], False),
    ],
)
def test_a_stream_is_for_those_who_ask_for_it(accept: list[str], *, wanted: bool) -> None:
    assert wants_events(accept) is wanted


async def test_a_quiet_stream_says_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.01)
    client = Client()

    async def ask(tell: Tell[Source]) -> None:
        await tell(Stage("retrieve"))
        await client.until(lambda: client.body.count(b": still here\n\n") >= 2)
        await tell(Stage("retrieve", 1))

    await client.hear(ask)
    first, *beats, last = await client.told()
    assert (first.content["stage"], last.content["milliseconds"]) == ("retrieve", 1_000)
    assert {beat.content[0] for beat in beats} == {"still here"}
    # The end of a stage came along with what followed, which is the end of the stream here.
    end = b'event: stage\ndata: {"stage":"retrieve","milliseconds":1000.0}\n\n'
    assert client.sent[-1] == {"type": "http.response.body", "body": end, "more_body": False}


async def test_before_the_first_event_nothing_is_sent_and_what_goes_wrong_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0)
    client = Client()

    async def ask(_: Tell[Source]) -> None:
        for _turn in range(20):
            await asyncio.sleep(0)
        raise Forbidden("no")

    with pytest.raises(Forbidden):
        await client.hear(ask)
    assert client.sent == []


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [(Unavailable("down"), 503, "down"), (ValueError("secret"), 500, "internal error")],
)
async def test_after_the_first_event_what_goes_wrong_is_the_last_one(
    error: Exception, status: int, detail: str
) -> None:
    client = Client()

    async def ask(tell: Tell[Source]) -> None:
        await tell(Delta("Rotate"))
        raise error

    await client.hear(ask)
    _, last = await client.told()
    assert last.name == "error"
    assert (last.content["status"], last.content["detail"]) == (status, detail)
    assert last.content["request_id"] == "the-request"
    assert not client.sent[-1]["more_body"]


async def test_the_servers_own_end_is_told_too() -> None:
    client = Client()

    async def ask(tell: Tell[Source]) -> None:
        await tell(Delta("Rotate"))
        await asyncio.Event().wait()

    hearing = asyncio.create_task(client.hear(ask))
    await client.until(lambda: b"Rotate" in client.body)
    hearing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hearing
    _, last = await client.told()
    assert (last.name, last.content["reason"]) == ("error", "STOPPING")


@pytest.mark.parametrize("reads", [True, False])
async def test_a_reader_that_leaves_ends_the_work_wherever_it_stands(*, reads: bool) -> None:
    client, ended = Client(reads=reads), asyncio.Event()

    async def ask(tell: Tell[Source]) -> None:
        try:
            await tell(Delta("Rotate"))
            await asyncio.Event().wait()
        finally:
            ended.set()

    hearing = asyncio.create_task(client.hear(ask))
    await client.until(lambda: bool(client.sent))
    client.left.set()
    await asyncio.wait_for(hearing, 5)
    assert ended.is_set()
    assert all(message.get("more_body", True) for message in client.sent)
