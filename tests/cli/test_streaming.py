"""`sluice ask` on a terminal: the text as it is released, and never one that was not completed."""

import asyncio
import fcntl
import json
import os
import pty
import struct
import sys
import termios
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from chassis import errors
from cli import exits
from cli.gateway_service import stream
from tests.cli.screen import Screen
from tests.cli.test_command import ANSWER, sluice

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
TEXT = str(ANSWER["text"])
HALF = len(TEXT) // 2
WIDTH = 60


def event(name: str, content: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content)}\n\n".encode()


BEGUN = event("stage", {"stage": "retrieve", "milliseconds": None}) + b": still here\n\n"
DELTAS = [event("delta", {"text": TEXT[:HALF]}), event("delta", {"text": TEXT[HALF:]})]
WITHDRAWN = event("retract", {"reason": "DEADLINE"})
LATE = {
    **ANSWER,
    "mode": "UNAVAILABLE",
    "reason": "DEADLINE",
    "acceptance": None,
    "message": "no answer: the time was over; these are the passages that were found",
    "text": "",
    "citations": [],
}
BROKEN = {"status": 500, "detail": "internal error", "reason": "INTERNAL"}


@dataclass
class Door:
    """A gateway that says these bytes, each piece by itself, and closes the connection."""

    pieces: Sequence[bytes] = ()
    url: str = ""
    asked: list[bytes] = field(default_factory=list)

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        self.asked.append(head + await reader.readexactly(length))
        for piece in (HEAD, *self.pieces):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    door = Door()
    server = await asyncio.start_server(door.meet, "127.0.0.1", 0)
    door.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield door


@dataclass
class Shown:
    text: str = ""
    withdrawn: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.text += text

    def withdraw(self, reason: str) -> None:
        self.withdrawn.append(reason)


async def test_however_a_stream_is_cut_into_pieces_the_answer_is_the_same(door: Door) -> None:
    raw, random = b"".join([BEGUN, *DELTAS, event("answer", ANSWER)]), Random(3)
    for _ in range(40):
        cuts = sorted(random.sample(range(len(raw)), random.randint(0, 60)))
        door.pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
        shown = Shown()
        answer = await stream(door.url, "token", "When?", shown)
        assert (answer.raw, shown) == (ANSWER, Shown(TEXT))
    assert b"accept: text/event-stream\r\n" in door.asked[0].lower()


async def test_a_stream_that_ends_without_its_last_event_is_no_answer(door: Door) -> None:
    raw = b"".join([BEGUN, *DELTAS, event("answer", ANSWER)])
    for end in range(0, len(raw), 37):
        door.pieces = [raw[:end]]
        with pytest.raises(errors.Unavailable) as cut:
            await stream(door.url, "token", "When?", Shown())
        assert cut.value.reason == "STREAM_CUT"


async def test_an_error_that_is_told_in_the_middle_is_raised(door: Door) -> None:
    door.pieces = [DELTAS[0], event("retract", {"reason": "INTERRUPTED"}), event("error", BROKEN)]
    shown = Shown()
    with pytest.raises(errors.Internal, match="internal error"):
        await stream(door.url, "token", "When?", shown)
    assert shown == Shown(TEXT[:HALF], ["INTERRUPTED"])


@asynccontextmanager
async def on_a_terminal(folder: Path, *arguments: str, **told: str) -> AsyncIterator[list[str]]:
    """What the command writes to a terminal, its exit code last."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, WIDTH, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli.main", *arguments),
        env={**os.environ, "TERM": "xterm", **told},
        cwd=folder,
        stdout=theirs,
        stderr=PIPE,
    )
    os.close(theirs)
    said: list[str] = []
    reading = asyncio.create_task(asyncio.to_thread(_read, ours, said))
    try:
        async with asyncio.timeout(30):
            await reading
            said.append(str(await process.wait()))
        yield said
    finally:
        os.close(ours)
        if process.returncode is None:
            process.kill()
        await process.communicate()


def _read(terminal: int, said: list[str]) -> None:
    while True:
        try:
            piece = os.read(terminal, 4_096)
        except OSError:  # the other side is closed
            return
        said.append(piece.decode())


async def seen(folder: Path, door: Door) -> tuple[Screen, int]:
    async with on_a_terminal(folder, "ask", "When?", SLUICE_GATEWAY_URL=door.url) as said:
        *written, code = said
        screen = Screen(WIDTH)
        screen.write("".join(written))
        return screen, int(code)


async def test_on_a_terminal_the_released_text_stays_above_citations_and_times(
    tmp_path: Path, door: Door
) -> None:
    door.pieces = [BEGUN, *DELTAS, event("answer", ANSWER)]
    screen, code = await seen(tmp_path, door)
    assert code == exits.OK
    assert screen.lines[:2] == [TEXT, ""]
    assert screen.lines[2].startswith("EXTRACTIVE NONE: sentences of the sources word for word")
    assert any(line.startswith("time: retrieve 21 ms") for line in screen.lines)
    assert "[S1] S1.md" in screen.held


async def test_on_a_terminal_withdrawn_text_is_struck_and_the_passages_are_shown(
    tmp_path: Path, door: Door
) -> None:
    door.pieces = [BEGUN, *DELTAS, WITHDRAWN, event("answer", LATE)]
    screen, code = await seen(tmp_path, door)
    assert code == exits.OK
    assert screen.lines[:2] == [TEXT, "Withdrawn: the time was over."]
    assert TEXT not in screen.held
    assert "no answer: the time was over" in screen.held
    assert "[S2] S2.md" in screen.held


async def test_on_a_terminal_text_without_an_answer_is_struck(tmp_path: Path, door: Door) -> None:
    door.pieces = [BEGUN, *DELTAS]
    screen, code = await seen(tmp_path, door)
    assert code == exits.UNREACHABLE
    assert screen.lines[:2] == [TEXT, "Withdrawn: the answer broke off."]
    assert TEXT not in screen.held


async def test_elsewhere_the_buffered_answer_is_asked_for(tmp_path: Path, door: Door) -> None:
    door.pieces = [json.dumps(ANSWER).encode()]
    told = {"SLUICE_GATEWAY_URL": door.url, "FORCE_COLOR": "1"}
    for options in ((), ("--json",)):
        result = await sluice(tmp_path, "ask", "When?", *options, **told)
        assert result.code == exits.OK
    assert all(b"accept: application/json\r\n" in head.lower() for head in door.asked)
