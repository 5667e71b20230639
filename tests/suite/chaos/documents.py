"""Documents that change again and again, each sentence saying whose it is and of which version."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chassis.identity import AccessLevel

PUBLIC, TEAM, RESTRICTED = AccessLevel.PUBLIC, AccessLevel.TEAM, AccessLevel.RESTRICTED
TENANTS = ("acme", "globex")
# The levels that a document has in turn; both tenants have all of them, so that what is another's
# would answer as well.
LEVELS: Mapping[str, tuple[AccessLevel, ...]] = {
    "heron": (PUBLIC,),
    "kestrel": (TEAM,),
    "osprey": (TEAM, RESTRICTED),
    "falcon": (RESTRICTED,),
}
# It never changes, so that a whole suite answers from it whatever else is under way.
STEADY = "anchor"
# It changes only to try whether documents come in.
PROBE = "tern"
MARK = re.compile(r"\b([a-z]+)-(public|team|restricted)-([a-z]+)-v([0-9]+)\b")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a sentence says of itself."""

    tenant: str
    level: AccessLevel
    word: str
    version: int

    def __str__(self) -> str:
        return f"{self.tenant}-{self.level.label}-{self.word}-v{self.version}"


def marks(text: str) -> list[Mark]:
    return [
        Mark(tenant, AccessLevel.parse(level), word, int(version))
        for tenant, level, word, version in MARK.findall(text)
    ]


@dataclass(slots=True)
class Document:
    """`sent` is the newest version that was handed in, `accepted` the newest acknowledged one."""

    tenant: str
    word: str
    levels: Sequence[AccessLevel]
    sent: int = 0
    accepted: int = 0

    @property
    def name(self) -> str:
        return f"{self.word}.md"

    def level(self, version: int) -> AccessLevel:
        return self.levels[version % len(self.levels)]

    def mark(self, version: int) -> Mark:
        return Mark(self.tenant, self.level(version), self.word, version)

    def sentences(self, version: int) -> list[str]:
        mark = self.mark(version)
        return [
            f"The {self.word} valve closes at {version} bar by sheet {mark}.",
            f"The {self.word} valve is inspected every {version} days by sheet {mark}.",
            f"The {self.word} valve is made of alloy {version} by sheet {mark}.",
        ]

    def text(self, version: int) -> bytes:
        sections = zip(("Pressure", "Inspection", "Material"), self.sentences(version), strict=True)
        parts = [f"## {heading}\n\n{sentence}\n" for heading, sentence in sections]
        return "\n".join([f"# The {self.word} valve\n", *parts]).encode()


class Library:
    """All documents of all tenants."""

    def __init__(self) -> None:
        words = {**LEVELS, STEADY: (PUBLIC,), PROBE: (TEAM,)}
        self.documents = {
            (tenant, word): Document(tenant, word, levels)
            for tenant in TENANTS
            for word, levels in words.items()
        }

    def accepted(self, tenant: str) -> dict[str, int]:
        """The newest acknowledged version of each of the tenant's documents."""
        return {one.word: one.accepted for one in self.documents.values() if one.tenant == tenant}

    def changing(self) -> list[Document]:
        return [one for (_, word), one in self.documents.items() if word in LEVELS]


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks."""

    tenant: str
    level: AccessLevel


def complaints(library: Library, reader: Reader, since: Mapping[str, int], shown: str) -> list[str]:
    """What is wrong with all that a reader was shown of one state of the documents.

    `since` are the versions that had been acknowledged before the reader asked.
    """
    found, versions = [], defaultdict(set)
    for mark in set(marks(shown)):
        if mark.tenant != reader.tenant:
            found.append(f"leaked to {reader.tenant}: {mark}")
            continue
        if mark.level > reader.level:
            found.append(f"leaked to {reader.level.label}: {mark}")
        document = library.documents[mark.tenant, mark.word]
        if mark != document.mark(mark.version) or mark.version > document.sent:
            found.append(f"wrong: nobody wrote {mark}")
        if mark.version < since[mark.word]:
            found.append(f"wrong: {mark} had been replaced by v{since[mark.word]}")
        versions[mark.word].add(mark.version)
    mixed = {word: several for word, several in versions.items() if len(several) > 1}
    found += [f"wrong: a mixture of {word}, {several}" for word, several in mixed.items()]
    return found
