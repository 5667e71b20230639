"""What a model's answer cites, and whether its sources carry it."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.generate.evidence import Source
from services.generate.marks import Statement, statements
from services.generate.result import Citation
from services.generate.support import support


@dataclass(frozen=True, slots=True)
class Cited:
    """`support` is that of the least supported statement, and 0 where nothing is cited."""

    citations: tuple[Citation, ...]
    support: float


def cited(text: str, sources: Sequence[Source]) -> Cited:
    """The citations of an answer whose marks were admitted.

    A statement is judged by all sources it cites together, and one without a mark by all that the
    answer cites: what nobody claims has to be carried all the same.
    """
    texts = {source.label: source.text for source in sources}
    told = statements(text)
    every = [texts[label] for label in dict.fromkeys(each for s in told for each in s.labels)]
    if not every:
        return Cited((), 0.0)
    carried = [support(s.text, [texts[label] for label in s.labels] or every) for s in told]
    citations = tuple(_citation(s, label, texts[label]) for s in told for label in s.labels)
    return Cited(citations, min(carried))


def _citation(statement: Statement, label: str, text: str) -> Citation:
    span = statement.span
    return Citation(label, span.start, span.end, support(statement.text, [text]))
