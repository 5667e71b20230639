"""The instructions to the model: one text file a locale, named by what it says."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chassis.errors import InvalidInput

FOLDER = Path(__file__).parent
DEFAULT_LOCALE = "en"


@dataclass(frozen=True, slots=True)
class Instructions:
    """The system message. `version` changes with every character of it."""

    version: str
    text: str


def load(folder: Path = FOLDER) -> dict[str, Instructions]:
    """The instructions of every locale in the folder."""
    return {path.stem: _read(path) for path in sorted(folder.glob("*.txt"))}


def choose(known: Mapping[str, Instructions], locale: str) -> Instructions:
    """Those of the locale's language, English when it is empty. Raises InvalidInput."""
    language = locale.replace("_", "-").partition("-")[0].lower() or DEFAULT_LOCALE
    if language not in known:
        raise InvalidInput(
            f"no instructions for this locale; known: {', '.join(known)}", field="locale"
        )
    return known[language]


def _read(path: Path) -> Instructions:
    text = path.read_text(encoding="utf-8").strip()
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Instructions(f"{path.stem}-{digest[:16]}", text)
