"""What the suite was seen to do: documents that it holds, passages, answers."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from chassis.identity import AccessLevel
from evals.case import Asker

CONTENT = frozenset({"GENERATED", "EXTRACTIVE", "PREVIOUS"})
PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Document:
    """One live document as ingest lists it; `content` is the hash of its bytes."""

    id: str
    content: str
    level: str
    groups: tuple[str, ...]
    state: str
    chunks: int

    def is_for(self, asker: Asker) -> bool:
        """Whether the asker may read it: groups narrow the level, they never widen it."""
        return (
            self.state == PUBLISHED
            and AccessLevel.parse(self.level) <= AccessLevel.parse(asker.level)
            and (not self.groups or not set(self.groups).isdisjoint(asker.groups))
        )


@dataclass(frozen=True, slots=True)
class Passage:
    """One returned chunk; `score` is in its response's space."""

    document: str
    chunk: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """What retrieve returned, best first. `seconds` as the caller saw them."""

    passages: tuple[Passage, ...]
    score_space: str
    epoch: int
    embedding_profile: str
    chunking_version: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Mark:
    """One citation: the sentence from `start` to `end` of the text, in code points."""

    label: str
    start: int
    end: int
    support: float


@dataclass(frozen=True, slots=True)
class Source:
    """One source of an answer; `level` is its document's."""

    label: str
    document: str
    text: str
    level: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the gateway gave it. Times in seconds; tokens are None where nobody counted."""

    mode: str
    reason: str
    acceptance: str
    text: str
    marks: tuple[Mark, ...]
    sources: tuple[Source, ...]
    seconds: float
    stages: Mapping[str, float]
    input_tokens: int | None
    output_tokens: int | None
    model: str
    instructions: str
    candidate: str
    cached: bool
    switched: bool
    shown: str  # everything that the person could see of it

    @property
    def has_content(self) -> bool:
        return self.mode in CONTENT

    @property
    def cited(self) -> Collection[Source]:
        """The sources that a mark names."""
        labels = {mark.label for mark in self.marks}
        return [source for source in self.sources if source.label in labels]


def answer(fields: Mapping[str, Any], seconds: float) -> Answer:
    """The gateway's answer in its JSON, which took `seconds`."""
    usage, provenance = fields["usage"], fields.get("provenance") or {}
    return Answer(
        mode=fields["mode"],
        reason=fields["reason"],
        acceptance=fields["acceptance"] or "",
        text=fields["text"],
        marks=tuple(
            Mark(one["label"], one["start"], one["end"], one["support"])
            for one in fields["citations"]
        ),
        sources=tuple(
            Source(one["label"], one["document_id"], one["included_text"], one["access_level"])
            for one in fields["sources"]
        ),
        seconds=seconds,
        stages={name: ms / 1e3 for name, ms in fields["timings"].items() if ms is not None},
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        model=usage["model"],
        instructions=fields["instructions_version"],
        candidate=provenance.get("candidate") or "",
        cached=provenance.get("cached_age_seconds") is not None,
        switched=provenance.get("switch_reason") not in {None, "", "NONE"},
        shown="\n".join(_texts(fields)),
    )


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))
