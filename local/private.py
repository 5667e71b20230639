"""What the suite writes on this machine is for its owner only."""

import os
from pathlib import Path
from typing import BinaryIO

FOLDER = 0o700
FILE = 0o600
UMASK = 0o077


def folder(path: Path) -> Path:
    """The folder, made with those above it that are not there; what is there stays as it is."""
    for missing in [one for one in path.parents if not one.exists()][::-1]:
        missing.mkdir(FOLDER, exist_ok=True)
    path.mkdir(FOLDER, exist_ok=True)
    return path


def appending(path: Path) -> BinaryIO:
    """The file, made when it is not there, open at its end."""
    # A Path's own open() takes no opener.
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags, FILE))
