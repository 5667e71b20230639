"""A Redis or Valkey of the benchmark's own."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from redis import Redis
from redis.exceptions import RedisError

from local import ports
from local.redis import server_binary

STARTS_WITHIN = 15.0  # seconds
LOOK_EVERY = 0.02


@dataclass
class Server:
    """It keeps nothing: started again, it is empty."""

    folder: Path
    port: int = field(default_factory=lambda: ports.free(1)[0])
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        return f"redis://{ports.LOOPBACK}:{self.port}/0"

    def start(self) -> None:
        options = {
            "--port": str(self.port),
            "--bind": ports.LOOPBACK,
            "--dir": os.fspath(self.folder),
            "--save": "",
            "--logfile": os.fspath(self.folder / "redis.log"),
        }
        words = [word for option in options.items() for word in option]
        self.process = subprocess.Popen([server_binary(), *words])  # noqa: S603 - the suite's own
        deadline = time.monotonic() + STARTS_WITHIN
        with self.client() as client:
            while not _answers(client):
                if time.monotonic() > deadline:
                    raise TimeoutError((self.folder / "redis.log").read_text())
                time.sleep(LOOK_EVERY)

    def client(self) -> Redis:
        return Redis.from_url(self.url)

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running() -> Iterator[Server]:
    with TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


def _answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except RedisError:
        return False
