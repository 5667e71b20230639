import os
import sys
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from local import ports, private, redis
from local.child import Child, Part
from local.qdrant_node.database import Database
from local.readiness import http_ready
from tests.local import parts


@pytest.fixture(autouse=True)
def _open_to_all() -> Iterator[None]:
    """Where nothing says otherwise, everybody may read and write what is made."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


def test_the_folder_and_the_logs_of_a_suite_are_its_owners(tmp_path: Path) -> None:
    with parts.run(tmp_path / "suite", *ports.free(2)):
        found = modes(tmp_path / "suite")
    assert (found["suite"], found["logs"]) == (0o700, 0o700)
    assert (found["models.log"], found["gateway.log"]) == (0o600, 0o600)


def test_the_folders_of_the_stores_are_their_owners(tmp_path: Path) -> None:
    redis.command(Path("server"), 1, tmp_path / "suite" / "redis")
    Database(tmp_path / "suite" / "qdrant").close()
    found = modes(tmp_path / "suite")
    assert {found[name] for name in ("suite", "redis", "qdrant")} == {0o700}


async def test_what_a_process_of_the_suite_writes_is_its_owners(tmp_path: Path) -> None:
    program = "open('data', 'w'); import os; os.mkdir('folder')"
    command = (sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {program}")
    part = Part("one", command, {}, 1, http_ready(1), ready_within=20)
    child = await Child.spawn(part, tmp_path / "one.log")
    await child.ended()
    assert child.code == 0
    found = modes(tmp_path)
    assert (found["data"], found["folder"], found["one.log"]) == (0o600, 0o700, 0o600)


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    private.folder(tmp_path / "mine" / "suite")
    assert modes(tmp_path / "mine") == {"mine": 0o777, "suite": 0o700}
