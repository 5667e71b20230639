"""A profile is one settings file: lines of NAME=value, comments begin with #.

What it does not set is as in the embedded profile, which is complete.
"""

from collections.abc import Mapping
from pathlib import Path

from chassis.settings import PREFIX
from local.failures import Refused

FOLDER = Path(__file__).parent / "profiles"
COMPLETE = "embedded"


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.env"))


def load(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The profile's settings; what the environment sets wins. Raises Refused."""
    if name not in names():
        raise Refused(f"no profile {name!r}; there are: {', '.join(names())}")
    ours = {key: value for key, value in environment.items() if key.startswith(PREFIX)}
    return _file(COMPLETE) | _file(name) | ours


def _file(name: str) -> dict[str, str]:
    return parse((FOLDER / f"{name}.env").read_text())


def parse(text: str) -> dict[str, str]:
    """The settings in a file's text. Raises Refused naming the line."""
    settings = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.startswith(PREFIX):
            raise Refused(f"line {number} of the profile is not {PREFIX}NAME=value")
        settings[name.strip()] = value.strip()
    return settings
