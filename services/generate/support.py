"""Whether the cited text carries a sentence. A cheap check of words, not a proof."""

from collections.abc import Sequence

from services.generate import words
from services.generate.sentences import sentences
from services.generate.vocabulary import NEGATIONS, NUMBERS

# Numbers and negations decide what a sentence says: where one is missing, or added, this is the
# most that is left, well below any sensible floor.
BROKEN = 0.25
# Of the cited sentences, those that come this near to the closest one tell whether it is negated.
NEAR = 0.9


def support(statement: str, cited: Sequence[str]) -> float:
    """Share of the statement's content words that the cited texts carry, 0 to 1.

    A statement without content words says nothing and is carried.
    """
    told = _told(statement)
    if not told:
        return 1.0
    shown = frozenset(_told_all("\n".join(cited)))
    carried = [words.best_likeness(word, shown) for word in told]
    share = sum(carried) / len(told)
    if _has_strange_number(told, shown) or _turns_around(statement, told, cited):
        return min(share, BROKEN)
    return share


def _told(text: str) -> list[str]:
    """The content words and numbers of a text, each once; small numbers in digits."""
    return list(dict.fromkeys(_told_all(text)))


def _told_all(text: str) -> list[str]:
    found = (NUMBERS.get(word, word) for word in words.words(text))
    return [word for word in found if words.is_content(word) and word not in NEGATIONS]


def _has_strange_number(told: Sequence[str], shown: frozenset[str]) -> bool:
    return any(words.is_number(word) and word not in shown for word in told)


def _turns_around(statement: str, told: Sequence[str], cited: Sequence[str]) -> bool:
    """Whether the statement is negated and its closest sentences are not, or the reverse."""
    negated = [
        (_closeness(told, sentence), _is_negated(sentence))
        for text in cited
        for sentence in (span.of(text) for span in sentences(text))
    ]
    closest = max((closeness for closeness, _ in negated), default=0.0)
    near = {is_negated for closeness, is_negated in negated if closeness >= NEAR * closest}
    return bool(near) and _is_negated(statement) not in near


def _closeness(told: Sequence[str], sentence: str) -> float:
    shown = frozenset(_told_all(sentence))
    return sum(words.best_likeness(word, shown) for word in told)


def _is_negated(text: str) -> bool:
    return not NEGATIONS.isdisjoint(words.words(text)) or "n't" in text.replace("\u2019", "'")
