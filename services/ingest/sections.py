"""Names of sections: from their headings, so that they stay the same while the text changes."""

import re
from collections.abc import Sequence

_GAPS = re.compile(r"[\W_]+")
_LENGTH = 64  # characters of each heading
_NAMELESS = "section"
BEFORE_HEADINGS = "start"


class SectionIds:
    """Gives each section of one document an id that no other has."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def of(self, path: Sequence[str]) -> str:
        """The id of the next section, such as disk-full/steps or disk-full/steps-2."""
        name = "/".join(_slug(heading) for heading in path) or BEFORE_HEADINGS
        found = name
        while found in self._taken:
            self._repeats[name] = self._repeats.get(name, 1) + 1
            found = f"{name}-{self._repeats[name]}"
        self._taken.add(found)
        return found


def _slug(heading: str) -> str:
    return _GAPS.sub("-", heading.casefold())[:_LENGTH].strip("-") or _NAMELESS
