"""Callers who come at a fixed rate, however long the ones before them wait.

Each asks its own question over a connection that is idle, or a new one. Prints how late the calls
began, in seconds, and by how they ended the seconds from when each was due to the last byte of its
response: the mode of an answer, or the status and the reason of a refusal.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field

import uvloop

from chassis.identity import AccessLevel
from cli.identity import Identity
from local.ports import LOOPBACK

LENGTH = re.compile(rb"content-length: (\d+)")
SAID = re.compile(rb'"(mode|reason)":"([A-Z_]+)"')
OK = b"200"
LIMIT = 120.0  # seconds after the last call was due
HEAD = "POST /v1/answers HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"


@dataclass
class Calls:
    """Where to, as whom, and what came of it."""

    port: int
    token: str
    late: list[float] = field(default_factory=list)
    ends: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    idle: "deque[Connection]" = field(default_factory=deque)
    open: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def come(self, rate: float, seconds: float, question: str) -> None:
        began = time.perf_counter()
        for number in range(round(rate * seconds)):
            due = began + number / rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            self.late.append(time.perf_counter() - due)
            connection = self.idle.pop() if self.idle else await self._connected()
            connection.ask(self._request(f"{question} {number}"), due)
        async with asyncio.timeout(LIMIT):
            while self.open:
                self.ended.clear()
                await self.ended.wait()

    async def _connected(self) -> "Connection":
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection(self), LOOPBACK, self.port)
        return connection

    def _request(self, question: str) -> bytes:
        body = json.dumps({"question": question})
        lengths = f"Authorization: Bearer {self.token}\r\nContent-Length: {len(body)}\r\n\r\n"
        return (HEAD + lengths + body).encode()


class Connection(asyncio.Protocol):
    """One call at a time."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._heard = bytearray()
        self._due = 0.0
        self._asking = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # a stream's

    def ask(self, request: bytes, due: float) -> None:
        self._due, self._asking = due, True
        self._heard.clear()
        self._calls.open += 1
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        end = self._heard.find(b"\r\n\r\n")
        length = LENGTH.search(self._heard, 0, end) if end >= 0 else None
        if length and len(self._heard) >= end + 4 + int(length[1]):
            self._end(_told(self._heard, end))
            self._calls.idle.append(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's own
        if self._asking:
            self._end("connection lost")
        elif self in self._calls.idle:
            self._calls.idle.remove(self)

    def _end(self, how: str) -> None:
        self._asking = False
        self._calls.open -= 1
        self._calls.ended.set()
        self._calls.ends[how].append(time.perf_counter() - self._due)


def _told(heard: bytearray, end: int) -> str:
    status = bytes(heard[9:12])
    said = {name: value.decode() for name, value in SAID.findall(heard, end)}
    if status == OK:
        mode, reason = said.get(b"mode", ""), said.get(b"reason", "")
        return mode if reason == "NONE" else f"{mode} {reason}"
    return f"{status.decode()} {said.get(b'reason', '')}"


async def run(port: int, tenant: str, rate: float, seconds: float, question: str) -> Calls:
    token = Identity("bench", tenant, AccessLevel.TEAM).for_gateway(lifetime=3_600)
    calls = Calls(port, token)
    await calls.come(rate, seconds, question)
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tenant", required=True)
    parser.add_argument("--rate", type=float, required=True, help="calls a second")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--question", required=True)
    given = parser.parse_args()
    calls = uvloop.run(run(given.port, given.tenant, given.rate, given.seconds, given.question))
    json.dump({"late": calls.late, "ends": calls.ends}, sys.stdout)


if __name__ == "__main__":
    main()
