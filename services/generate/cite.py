"""What a model's answer cites, and whether its sources carry it."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.generate.evidence import Source
from services.generate.marks import Statement, statements
from services.generate.result import Citation
from services.generate.support import Carrier, support


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
    told = statements(text)
    labels = frozenset(label for statement in told for label in statement.labels)
    carriers = {s.label: Carrier.read(s.text) for s in sources if s.label in labels}
    if not carriers:
        return Cited((), 0.0)
    every = tuple(carriers)
    carried = (support(s.text, [carriers[each] for each in s.labels or every]) for s in told)
    citations = (_citation(s, label, carriers[label]) for s in told for label in s.labels)
    return Cited(tuple(citations), min(carried))


def _citation(statement: Statement, label: str, carrier: Carrier) -> Citation:
    span = statement.span
    return Citation(label, span.start, span.end, support(statement.text, [carrier]))
