"""The index built anew by other rules beside the one in use, as an operator does it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.suite.conftest import ROOT, Running


def reindex(suite: Running, folder: Path, tokens: int) -> tuple[int, Any]:
    """Exit code and document of the command, for an alias that nobody else uses."""
    options = ("--data", str(suite.data), "--json")
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "reindex", str(folder), *options],
        env={
            **os.environ,
            "SLUICE_COLLECTION": "beside",
            "SLUICE_CHUNK_TOKENS": str(tokens),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.suite
def test_a_folder_is_indexed_by_new_rules_and_readers_are_moved_once_nothing_is_refused(
    suite: Running, tmp_path: Path
) -> None:
    (tmp_path / "one.md").write_text("# One\n\nThe first document.\n")
    (tmp_path / "two.md").write_text("# Two\n\nThe second document.\n")
    code, first = reindex(suite, tmp_path, 256)
    assert (code, first["switched"], first["previous"]) == (0, True, "")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00not text")
    code, refused = reindex(suite, tmp_path, 128)
    assert (code, refused) == (1, {"switched": False, "refused": 1})
    (tmp_path / "bad.md").unlink()
    code, second = reindex(suite, tmp_path, 128)
    assert (code, second["previous"]) == (0, first["current"])
    assert second["current"] != first["current"]
    assert suite.ready()
