"""Whether the cited text carries a statement. A cheap check of words, not a proof."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.generate import words
from services.generate.sentences import sentences
from services.generate.vocabulary import NEGATIONS, NUMBERS

# Numbers and negations decide what a sentence says: where one is missing, or added, this is the
# most that is left, well below any sensible floor.
BROKEN = 0.25
# Of the cited sentences, those that come this near to the closest one tell whether it is negated.
NEAR = 0.9


@dataclass(frozen=True, slots=True)
class Carrier:
    """A source's text, read once for all statements: its words, and its sentences' words."""

    told: frozenset[str]
    sentences: tuple[tuple[frozenset[str], bool], ...]

    @classmethod
    def read(cls, text: str) -> "Carrier":
        shown = [span.of(text) for span in sentences(text)]
        return cls(
            frozenset(_told(text)),
            tuple((frozenset(_told(each)), _is_negated(each)) for each in shown),
        )


def support(statement: str, carriers: Sequence[Carrier]) -> float:
    """Share of the statement's content words that the sources carry together, 0 to 1.

    A statement without content words says nothing and is carried.
    """
    told = _told(statement)
    if not told:
        return 1.0
    shown = frozenset[str]().union(*(carrier.told for carrier in carriers))
    share = _carried(told, shown) / len(told)
    if _has_strange_number(told, shown) or _turns_around(statement, told, carriers):
        return min(share, BROKEN)
    return share


def _told(text: str) -> list[str]:
    """The content words and numbers of a text, each once; small numbers in digits."""
    found = (NUMBERS.get(word, word) for word in words.words(text))
    told = (word for word in found if words.is_content(word) and word not in NEGATIONS)
    return list(dict.fromkeys(told))


def _carried(told: Sequence[str], shown: frozenset[str]) -> float:
    return sum(1.0 if word in shown else words.best_likeness(word, shown) for word in told)


def _has_strange_number(told: Sequence[str], shown: frozenset[str]) -> bool:
    return any(words.is_number(word) and word not in shown for word in told)


def _turns_around(statement: str, told: Sequence[str], carriers: Sequence[Carrier]) -> bool:
    """Whether the statement is negated and its closest sentences are not, or the reverse."""
    close = [
        (_carried(told, shown), is_negated)
        for carrier in carriers
        for shown, is_negated in carrier.sentences
    ]
    closest = max((closeness for closeness, _ in close), default=0.0)
    near = {is_negated for closeness, is_negated in close if closeness >= NEAR * closest}
    return bool(near) and _is_negated(statement) not in near


def _is_negated(text: str) -> bool:
    return not NEGATIONS.isdisjoint(words.words(text)) or "n't" in text.replace("\u2019", "'")
