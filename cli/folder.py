"""Which files below a path are documents, which are not, and which cannot be read."""

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from chassis.errors import InvalidInput

EXTENSIONS = frozenset({".md", ".markdown", ".txt", ".html", ".htm", ".pdf", ".docx"})


@dataclass(frozen=True, slots=True)
class File:
    """`document_id` is the path below the folder, with slashes on every system."""

    document_id: str
    path: Path


@dataclass(frozen=True, slots=True)
class Problem:
    """An entry that may be a document but cannot be read. A folder's id ends with a slash."""

    document_id: str
    reason: str


@dataclass(slots=True)
class Walk:
    """What was found, in order of id. `skipped` counts by the rule that skipped."""

    single: bool = False
    files: list[File] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


def walk(path: Path) -> Walk:
    """The documents at a path: a file, or a folder and everything below it.

    Raises InvalidInput when there is nothing at the path or it cannot be listed.
    """
    if path.is_file():
        return _one_file(path)
    if not path.is_dir():
        raise InvalidInput(f"there is no file or folder {path}", field="path")
    found = Walk()
    root = path.resolve()
    try:
        _add_folder(found, root, root)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", field="path") from error
    found.files.sort(key=lambda file: file.document_id)
    return found


def _one_file(path: Path) -> Walk:
    if path.suffix.lower() not in EXTENSIONS:
        raise InvalidInput(
            f"{path} is none of the formats that are read: {', '.join(sorted(EXTENSIONS))}",
            field="path",
        )
    return Walk(single=True, files=[File(path.name, path)])


def _add_folder(found: Walk, folder: Path, root: Path) -> None:
    for path in sorted(folder.iterdir()):
        identity = path.relative_to(root).as_posix()
        rule = _skipping_rule(path)
        problem = _problem(path, root)
        if rule:
            found.skipped[rule] += 1
        elif problem:
            found.problems.append(Problem(_readable(identity), problem))
        elif path.is_dir():
            _add_subfolder(found, path, root, identity)
        else:
            found.files.append(File(identity, path))


def _add_subfolder(found: Walk, folder: Path, root: Path, identity: str) -> None:
    try:
        _add_folder(found, folder, root)
    except OSError as error:
        found.problems.append(
            Problem(f"{_readable(identity)}/", f"the folder cannot be read: {error.strerror}")
        )


def _skipping_rule(path: Path) -> str:
    """Why an entry is no document; empty when it may be one."""
    if path.is_dir():
        # Site generators keep their documents in folders such as _posts.
        return "hidden folders" if path.name.startswith(".") else ""
    if path.name.startswith((".", "_")):
        return "names that begin with . or _"
    if path.name == "README.md":
        return "README.md"
    if path.suffix.lower() not in EXTENSIONS:
        return "formats that are not read"
    return ""


def _problem(path: Path, root: Path) -> str:
    """Why an entry that may be a document cannot be read; empty when it can."""
    if path.is_symlink() and not path.resolve().is_relative_to(root):
        return "a link to outside the folder"
    if path.is_symlink() and path.is_dir():
        return "a link to a folder"
    if not path.is_dir() and not path.is_file():
        return "not a regular file"
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    return ""


def _readable(identity: str) -> str:
    return os.fsencode(identity).decode(errors="replace")
