"""Many who read one streamed answer each, all at the same time, some of them slowly.

Slow ones have a small buffer and look into it now and then. Prints how many streams came whole:
every delta that was to come, and the answer, and the seconds until the last of either kind ended.
"""

import argparse
import asyncio
import json
import socket
import sys
import time
from collections import Counter

import uvloop

from chassis.identity import AccessLevel
from cli.identity import Identity
from local.ports import LOOPBACK

BUFFER = 4_096  # bytes that the system keeps for a slow reader
LOOK_EVERY = 2.0
CHUNK = 1 << 16
OPENED_AT_ONCE = 50
HEAD = (
    "POST /v1/answers HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
    "Accept: text/event-stream\r\nConnection: close\r\n"
)


async def read(
    port: int, request: bytes, *, slow: bool, opening: asyncio.Semaphore
) -> tuple[Counter[str], float]:
    """How many events of each name came, and when the stream ended."""
    events: Counter[str] = Counter()
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        if slow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        async with opening:
            await loop.sock_connect(connection, (LOOPBACK, port))
            await loop.sock_sendall(connection, request)
        rest = b""
        while piece := await loop.sock_recv(connection, CHUNK):
            *lines, rest = (rest + piece).split(b"\n")
            events.update(line[7:].decode() for line in lines if line.startswith(b"event: "))
            if slow:
                await asyncio.sleep(LOOK_EVERY)
    return events, time.perf_counter()


async def run(port: int, tenant: str, streams: int, slow: int, deltas: int) -> dict[str, object]:
    token = Identity("bench", tenant, AccessLevel.TEAM).for_gateway(lifetime=3_600)
    opening, began = asyncio.Semaphore(OPENED_AT_ONCE), time.perf_counter()
    found = await asyncio.gather(
        *(
            read(port, _request(token, number), slow=number < slow, opening=opening)
            for number in range(streams)
        )
    )
    whole = sum((events["delta"], events["answer"]) == (deltas, 1) for events, _ in found)
    ended = [round(end - began, 1) for _, end in found]
    last = {"slow": max(ended[:slow], default=0), "quick": max(ended[slow:], default=0)}
    return {"whole": whole, "broken": streams - whole, "seconds": last}


def _request(token: str, number: int) -> bytes:
    body = json.dumps({"question": f"How often is the level measured? {number}"})
    lengths = f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    return (HEAD + lengths + body).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tenant", required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--slow", type=int, required=True, help="how many of them read slowly")
    parser.add_argument("--deltas", type=int, required=True, help="how many each has to read")
    given = parser.parse_args()
    found = uvloop.run(run(given.port, given.tenant, given.streams, given.slow, given.deltas))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
