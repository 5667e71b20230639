"""What a running suite leaves in its data folder: its lock, and where its processes are."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from local import private
from local.failures import Refused

LOCK = "lock"
STATE = "suite.json"


@dataclass(frozen=True, slots=True)
class RunningPart:
    """`port` is the one that its readiness is asked at; `pid` 0 means that it is not ours."""

    name: str
    port: int
    pid: int
    log: str


@dataclass(frozen=True, slots=True)
class RunningSuite:
    """`ports` are by the names of local.ports, `url` is the gateway's.

    `version` is that of what was started, whatever is installed by now.
    """

    pid: int
    profile: str
    url: str
    ports: dict[str, int]
    parts: list[RunningPart]
    version: str = ""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for one suite. Raises Refused while another holds it.

    The lock is the kernel's: it goes when the process ends, however it ends.
    """
    private.folder(folder)
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            suite = read(folder)
            owner = f" (process {suite.pid}, {suite.url})" if suite else ""
            raise Refused(
                f"a suite already runs on {folder}{owner}: stop it, or choose another --data folder"
            ) from None
        try:
            yield
        finally:
            (folder / STATE).unlink(missing_ok=True)


def write(folder: Path, suite: RunningSuite) -> None:
    """Replace the folder's state in one step."""
    draft = folder / f"{STATE}.new"
    draft.write_text(json.dumps(asdict(suite), indent=2) + "\n")
    draft.replace(folder / STATE)


def read(folder: Path) -> RunningSuite | None:
    """The suite that runs on the folder, None when none does."""
    try:
        fields = json.loads((folder / STATE).read_text())
        parts = [RunningPart(**part) for part in fields.pop("parts")]
        suite = RunningSuite(parts=parts, **fields)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return suite if _alive(suite.pid) else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
