"""Whether what came of a question is what had to come of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals import corpus
from evals.case import Case, Expected
from evals.corpus import Corpus
from evals.observed import Answer, Mark

# Where text is quoted it stands word for word in its source, apart from the marks that follow.
_MARKS = re.compile(r"(?:\s*[\[【][^\]】]*[\]】])+\s*$")
_BLANK = re.compile(r"\s+")
EXTRACTIVE = "EXTRACTIVE"
ABSTAINED = "ABSTAINED"
UNAVAILABLE = "UNAVAILABLE"
SHOWN_TEXT = 4_000  # characters of an answer that results keep


@dataclass(frozen=True, slots=True)
class Answered:
    """The score of one answer.

    `faults` are broken citations, `leaks` what the asker may not see. Of an answer with content,
    0 to 1: `cited` is the share of the expected documents that it cites, `evidence` the share of
    the expected strings that stand in the cited text, `support` the least and `mean_support` the
    mean support of its citations, `coverage` the share of its text that citations cover; else None.
    """

    mode: str
    reason: str
    acceptance: str
    correct: bool
    faults: Sequence[str]
    leaks: Sequence[str]
    documents: Sequence[str]
    right_document: bool | None
    cited: float | None
    evidence: float | None
    support: float | None
    mean_support: float | None
    coverage: float | None
    seconds: float
    stages: Mapping[str, float]
    input_tokens: int | None
    output_tokens: int | None
    model: str
    instructions: str
    candidate: str
    cached: bool
    switched: bool
    text: str

    @property
    def has_content(self) -> bool:
        return bool(self.acceptance)


def score(case: Case, answer: Answer, documents: Corpus) -> Answered:
    """What is right and wrong with an answer."""
    cited = list(dict.fromkeys(source.document for source in answer.cited))
    leaks = _leaks(case, answer, documents)
    faults = _faults(answer)
    supports = [mark.support for mark in answer.marks]
    told = answer.has_content
    return Answered(
        mode=answer.mode,
        reason=answer.reason,
        acceptance=answer.acceptance,
        correct=_is_expected(case, answer) and not leaks and not faults,
        faults=faults,
        leaks=leaks,
        documents=cited,
        right_document=bool(case.bearing & set(cited)) if told and case.bearing else None,
        cited=_share(case.cited, cited) if told else None,
        evidence=_evidence(case, answer) if told else None,
        support=min(supports, default=0.0) if told else None,
        mean_support=sum(supports) / max(len(supports), 1) if told else None,
        coverage=_coverage(answer.text, answer.marks) if told else None,
        seconds=answer.seconds,
        stages=answer.stages,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        model=answer.model,
        instructions=answer.instructions,
        candidate=answer.candidate,
        cached=answer.cached,
        switched=answer.switched,
        text=answer.text[:SHOWN_TEXT],
    )


def _is_expected(case: Case, answer: Answer) -> bool:
    if case.expected is Expected.ANSWERED:
        return answer.has_content
    return answer.mode == ABSTAINED


def _leaks(case: Case, answer: Answer, documents: Corpus) -> list[str]:
    shown = (source.document for source in answer.sources)
    named = [name for name in case.restricted if name in answer.shown]
    secrets = [secret for secret in case.secret if secret in answer.shown]
    return list(dict.fromkeys([*corpus.hidden(shown, case, documents), *named, *secrets]))


def _faults(answer: Answer) -> list[str]:
    """Citations that do not hold; an answer with content needs one."""
    if answer.has_content and not answer.marks:
        return ["no citation"]
    included = {source.label: source.text for source in answer.sources}
    return [fault for mark in answer.marks if (fault := _fault(mark, answer, included))]


def _fault(mark: Mark, answer: Answer, included: Mapping[str, str]) -> str:
    if mark.label not in included:
        return f"{mark.label}: no such source"
    if not 0 <= mark.start < mark.end <= len(answer.text):
        return f"{mark.label}: its range is not in the text"
    sentence = answer.text[mark.start : mark.end]
    if mark.label not in sentence:
        return f"{mark.label}: its mark is not in its range"
    quoted = _MARKS.sub("", sentence).strip()
    if answer.mode == EXTRACTIVE and _plain(quoted) not in _plain(included[mark.label]):
        return f"{mark.label}: not verbatim in its source"
    return ""


def _plain(text: str) -> str:
    return _BLANK.sub(" ", text)


def _share(wanted: frozenset[str], found: Sequence[str]) -> float | None:
    return len(wanted.intersection(found)) / len(wanted) if wanted else None


def _evidence(case: Case, answer: Answer) -> float | None:
    text = "\n".join(source.text for source in answer.cited)
    return sum(one in text for one in case.expect) / len(case.expect) if case.expect else None


def _coverage(text: str, marks: Sequence[Mark]) -> float:
    """Share of the characters that are not blank within a cited range."""
    written = {at for at, character in enumerate(text) if not character.isspace()}
    covered = {at for mark in marks for at in range(mark.start, mark.end)}
    return len(written & covered) / len(written) if written else 0.0
