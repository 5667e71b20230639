import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from local.readiness import Probe, http_ready, redis_ready


@dataclass(frozen=True)
class Server:
    port: int
    answered: threading.Event


@contextmanager
def answering(reply: bytes) -> Iterator[Server]:
    """A server in a thread that answers one connection with `reply`."""
    answered = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1_000)
            connection.sendall(reply)
            answered.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield Server(listener.getsockname()[1], answered)
        thread.join()


async def beside_a_busy_loop(probe: Probe, server: Server) -> bool:
    """What it says when the loop stands still until the server has answered."""
    probing = asyncio.ensure_future(probe())
    await asyncio.sleep(0)
    assert server.answered.wait(20)
    return await probing


@pytest.mark.parametrize(("reply", "ready"), [(b"+PONG\r\n", True), (b"-LOADING\r\n", False)])
async def test_redis_is_ready_when_it_answers_however_busy_the_asker(
    reply: bytes,
    ready: bool,  # noqa: FBT001 - a parameter
) -> None:
    with answering(reply) as server:
        assert await beside_a_busy_loop(redis_ready(server.port), server) is ready


@pytest.mark.parametrize(
    ("reply", "ready"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n", False),
        (b"", False),
        (b"nonsense\r\n", False),
    ],
)
async def test_an_http_process_is_ready_with_status_200(
    reply: bytes,
    ready: bool,  # noqa: FBT001 - a parameter
) -> None:
    with answering(reply) as server:
        assert await beside_a_busy_loop(http_ready(server.port), server) is ready
