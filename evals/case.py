"""One gold question: who asks it, what has to come of it, and which documents bear on it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Text = Annotated[str, Field(min_length=1)]
# Files hold lists where the values here are tuples; everything inside them stays strict.
Texts = Annotated[tuple[Text, ...], Field(strict=False)]
# A document, or one chunk of it.
Identity = str | tuple[str, int]


class Expected(StrEnum):
    """What has to come of a question."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    WITHHELD = "withheld"


class Fields(BaseModel):
    """What is read from a file: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Asker(Fields):
    """The person who asks."""

    level: Literal["public", "team", "restricted"] = "team"
    groups: Texts = ()


class Judgment(Fields):
    """How much a document, or one chunk under one chunking version, says on the question.

    `grade` 2 carries the answer, 1 helps, 0 was looked at and does not.
    """

    document: Text
    grade: Annotated[int, Field(ge=0, le=2)]
    chunk: Annotated[int, Field(ge=0)] | None = None
    chunking_version: str = ""

    @property
    def identity(self) -> Identity:
        return self.document if self.chunk is None else (self.document, self.chunk)

    @model_validator(mode="after")
    def _chunks_belong_to_a_version(self) -> "Judgment":
        if (self.chunk is None) != (not self.chunking_version):
            raise ValueError("chunk and chunking_version go together")
        return self


class Case(Fields):
    """A question with what is known of it.

    `relevant` are the judgments; `complete` says that everything that can come back is judged, so
    that an unjudged result is an error. `expect` are strings that have to occur in the cited
    evidence, `documents` those that have to be cited (else those of grade 2). `restricted` are
    documents that the asker may not see, `secret` strings of theirs that may never be shown.
    """

    id: Text
    category: Text
    question: Annotated[str, Field(min_length=1, max_length=4_000)]
    asker: Asker = Asker()
    locale: str = ""
    severity: Literal["normal", "severe"] = "normal"
    relevant: Annotated[tuple[Judgment, ...], Field(strict=False)] | None = None
    complete: bool = False
    expect: Texts = ()
    outcome: Annotated[Expected, Field(strict=False)] | None = None
    documents: Texts = ()
    restricted: Texts = ()
    secret: Texts = ()

    @property
    def expected(self) -> Expected:
        """As told; else by what is given: judgments, hidden documents, or neither."""
        if self.outcome is not None:
            return self.outcome
        if self.relevant:
            return Expected.ANSWERED
        return Expected.WITHHELD if self.restricted or self.secret else Expected.ABSTAINED

    @property
    def is_answerable(self) -> bool:
        return self.expected is Expected.ANSWERED

    @property
    def grades(self) -> Mapping[Identity, int]:
        return {one.identity: one.grade for one in self.relevant or ()}

    @property
    def by_chunk(self) -> bool:
        """Whether chunks are judged, not whole documents."""
        return any(one.chunk is not None for one in self.relevant or ())

    @property
    def chunking_version(self) -> str:
        """The version whose chunks are judged; empty where documents are."""
        return next((one.chunking_version for one in self.relevant or ()), "")

    @property
    def cited(self) -> frozenset[str]:
        """Documents that an answer has to cite."""
        carrying = (one.document for one in self.relevant or () if one.grade == 2)  # noqa: PLR2004 - the grade that carries
        return frozenset(self.documents or carrying)

    @property
    def bearing(self) -> frozenset[str]:
        """Documents that hold something of the answer."""
        return frozenset(one.document for one in self.relevant or () if one.grade) | self.cited

    @model_validator(mode="after")
    def _judgments_can_be_scored(self) -> "Case":
        if self.relevant is None:
            return self
        if not any(self.grades.values()):
            raise ValueError("relevant: no document of grade 1 or 2; leave it out where none is")
        if len(self.grades) < len(self.relevant):
            raise ValueError("relevant: one document or chunk is judged twice")
        if len({one.chunking_version for one in self.relevant}) > 1:
            raise ValueError("relevant: judge documents, or chunks of one chunking version")
        return self

    @model_validator(mode="after")
    def _outcome_has_its_fields(self) -> "Case":
        if (self.expected is Expected.ANSWERED) != (self.relevant is not None):
            raise ValueError("outcome: a question has judgments exactly if it is to be answered")
        if self.expected is Expected.WITHHELD and not (self.restricted or self.secret):
            raise ValueError("outcome: name what is withheld in restricted or secret")
        return self
