"""Which code this is."""

import subprocess
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
GIT_SECONDS = 10


def release() -> str:
    """The version that is installed."""
    return version("sluice")


def revision() -> str:
    """Git's id of the commit, with + after it where files differ; empty without git."""
    commit = _git("rev-parse", "HEAD")
    return f"{commit}+" if commit and _git("status", "--porcelain", "-uno") else commit


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            command, capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
