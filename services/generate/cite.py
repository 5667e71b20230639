"""What a model's answer cites, and whether its sources carry it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from services.generate.evidence import Source
from services.generate.marks import Statement, statements
from services.generate.names import named
from services.generate.result import Citation
from services.generate.support import Carrier, support


@dataclass(frozen=True, slots=True)
class Cited:
    """`support` is that of the least supported statement, and 0 where nothing is cited."""

    citations: tuple[Citation, ...]
    support: float


class Carriers:
    """The sources as carriers of statements, each read once, when it is first cited.

    Most statements cite one source, and are asked for by themselves and for that citation.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = {source.label: source for source in sources}
        self._read: dict[str, Carrier] = {}
        self._judged: dict[tuple[str, tuple[str, ...]], float] = {}

    def support(self, statement: Statement, labels: Iterable[str]) -> float:
        """How far the labelled sources together carry a statement; 0 by none."""
        asked = statement.text, tuple(labels)
        if asked not in self._judged:
            carriers = [self._carrier(label) for label in asked[1]]
            carried = support(statement.text, carriers, self._named) if carriers else 0.0
            self._judged[asked] = carried
        return self._judged[asked]

    @cached_property
    def _named(self) -> frozenset[str]:
        """What any source calls by name: a sentence that begins with one may mean a name too."""
        return frozenset().union(*(named(source.text) for source in self._sources.values()))

    def _carrier(self, label: str) -> Carrier:
        if label not in self._read:
            source = self._sources[label]
            heading = "\n".join([source.title, *source.headings])
            self._read[label] = Carrier.read(source.text, heading)
        return self._read[label]


def cited(text: str, sources: Sequence[Source]) -> Cited:
    """The citations of an answer whose marks were admitted.

    A statement is judged by all sources it cites together, and one without a mark by all that the
    answer cites: what nobody claims has to be carried all the same.
    """
    told = statements(text)
    carriers = Carriers(sources)
    every = tuple(dict.fromkeys(label for statement in told for label in statement.labels))
    carried = (carriers.support(s, s.labels or every) for s in told)
    citations = (
        Citation(label, s.span.start, s.span.end, carriers.support(s, [label]))
        for s in told
        for label in s.labels
    )
    return Cited(tuple(citations), min(carried, default=0.0))
