"""Whether the cited text carries a statement. A cheap check of words, not a proof."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from services.generate import words
from services.generate.names import beginnings, names, stands_for
from services.generate.polarity import (
    Bound,
    Turns,
    bounds,
    contradicts,
    is_negated,
    opposes,
    turns,
)
from services.generate.quantities import KANJI_NUMBER, Quantity, quantities
from services.generate.sentences import Span, lines, sentences
from services.generate.units import NUMBER_WORDS, SHARES, UNITS
from services.generate.vocabulary import COUNTED_DAYS, DATES, NEGATIONS

# Numbers, names and negations decide what a sentence says: where one is missing, or added, this is
# the most that is left, well below any sensible floor.
BROKEN = 0.25
# Of the cited sentences, those that come this near to the closest one tell whether it is negated.
NEAR = 0.9
# A number counts where the words of its sentence carry this share of what the closest ones do, and
# this share where those tell another number of its kind.
BESIDE, BESIDE_RIVAL = 0.3, 0.7

# Two sentences say the same of all but one thing: this many content words at least, and this many
# apart at most.
SPOKEN, ONE = 3, 1.2

_CLAUSE = re.compile(
    r"[,:](?!\d)\s*|[;\u3001\uff0c\uff1b\uff1a\u2013\u2014]\s*"
    r"|\s(?:and|but|und|aber|e|mas|y|pero|et|mais)\s"
)
_UNSPACED = re.compile("[\u3040-\u9fff]+")
_TOKEN = re.compile(r"[\w.-]*\w")
_COUNTED_DAY = re.compile(rf"\b({'|'.join(COUNTED_DAYS)})s?(?=-feiras?\b)")

_Likeness = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Told:
    """What a sentence says, as far as words show it."""

    words: frozenset[str]
    quantities: tuple[Quantity, ...]
    bounds: frozenset[Bound]
    is_negated: bool
    # Clause by clause.
    negated: tuple[bool, ...]
    turns: Turns

    @classmethod
    def read(cls, text: str, language: str) -> "Told":
        return cls(
            frozenset(_content(text)),
            tuple(quantities(text, language)),
            bounds(text),
            is_negated(text, language),
            tuple(is_negated(clause, language) for clause in _clauses(text)),
            turns(text),
        )


@dataclass(frozen=True, slots=True)
class Carrier:
    """A source, read once for all statements and for some time: questions share sources.

    `words` are those of its headings too; `clauses` are the parts of its sentences.
    """

    language: str
    words: frozenset[str]
    tokens: frozenset[str]
    beginnings: tuple[tuple[str, str], ...]
    sentences: tuple[Told, ...]
    clauses: tuple[Told, ...]

    @classmethod
    @lru_cache(maxsize=512)
    def read(cls, text: str, heading: str = "") -> "Carrier":
        language = words.language(text)
        shown = [span.of(text) for span in _sentences(text)]
        clauses = [clause for each in shown for clause in _clauses(each)]
        whole = f"{heading}\n{text}"
        return cls(
            language,
            frozenset(_content(whole)),
            frozenset(_TOKEN.findall(_UNSPACED.sub(" ", words.plain(whole)))),
            tuple(beginnings(text)),
            tuple(Told.read(each, words.language(each) or language) for each in shown),
            tuple(Told.read(each, words.language(each) or language) for each in clauses),
        )


def support(
    statement: str, carriers: Sequence[Carrier], others: Collection[str] = frozenset()
) -> float:
    """Share of the statement's content words that the sources carry together, 0 to 1.

    At most BROKEN where a number, a unit, a day or a name is another one, or a negation or a bound
    was turned around. `others` are names of other sources, folded. A statement without content
    says nothing and is carried.
    """
    language = words.language(statement) or (carriers[0].language if carriers else "")
    told = Told.read(statement, language)
    shown = frozenset[str]().union(*(carrier.words for carrier in carriers))
    judged = _Judged(told, {word: _alike(word, shown) for word in told.words}, carriers)
    is_broken = (
        not _DATED.intersection(told.words) <= shown
        or not judged.carries_quantities()
        or judged.is_turned()
        or judged.is_opposed()
        or not all(_is_named(name, carriers) for name in names(statement, language))
        or not all(
            _is_named(beginning[0], carriers)
            for beginning in beginnings(statement)
            if words.plain(beginning[0]) in others
            or (language == "en" and any(stands_for(c.beginnings, beginning) for c in carriers))
        )
    )
    share = judged.share()
    return min(share, BROKEN) if is_broken else share


_DATED = frozenset(DATES.values())


class _Judged:
    """A statement against the sentences of its sources, each with how near it comes in words."""

    def __init__(self, told: Told, likeness: _Likeness, carriers: Sequence[Carrier]) -> None:
        self._told = told
        self._likeness = likeness
        self._sentences = [
            [(self._by_words(each), each) for each in carrier.sentences] for carrier in carriers
        ]
        self._clauses = [each for carrier in carriers for each in carrier.clauses]

    def share(self) -> float:
        """The share of the words; carried quantities count like words, others break it anyway."""
        counted = len(self._told.quantities)
        if not self._told.words:
            return 1.0
        carried = sum(max(found.values(), default=0.0) for found in self._likeness.values())
        return (carried + counted) / (len(self._told.words) + counted)

    def carries_quantities(self) -> bool:
        """Whether all quantities stand in sentences that speak of what the statement does."""
        return all(self._carries(quantity) for quantity in self._told.quantities)

    def is_turned(self) -> bool:
        """Whether the closest sentences are negated or bound the other way, all of them."""
        shown = [told for each in self._sentences for _, told in each]
        near, closest = self._nearest(shown)
        if contradicts(self._told.bounds, frozenset().union(*(each.bounds for each in near))):
            return True
        if not near or self._agrees(near):
            return self._is_twisted(near)
        # One clause may say it all, and what its sentence adds is negated or not.
        clauses, clause = self._nearest(self._clauses)
        return clause < NEAR * closest or not self._agrees(clauses)

    def is_opposed(self) -> bool:
        """Whether sentences of the same words but one take the other side of a pair, all of them.

        Where one is negated, "may not" and "must not" say the same: those are left to `is_turned`.
        """
        if self._told.is_negated:
            return False
        twins = [
            told
            for each in self._sentences
            for _, told in each
            if not told.is_negated and self._is_same_but_one(told)
        ]
        return bool(twins) and all(opposes(self._told.turns, each.turns) for each in twins)

    def _is_same_but_one(self, shown: Told) -> bool:
        most = max(len(shown.words), len(self._told.words))
        return most >= SPOKEN and self._by_words(shown) >= most - ONE

    def _is_twisted(self, shown: Sequence[Told]) -> bool:
        """Whether sentences of the same words and clauses negate other clauses, all of them."""
        twins = [each for each in shown if self._is_twin(each)]
        return bool(twins) and all(each.negated != self._told.negated for each in twins)

    def _is_twin(self, shown: Told) -> bool:
        most = max(len(shown.words), len(self._told.words))
        is_alike = 0 < NEAR * most <= self._by_words(shown)
        return is_alike and len(shown.negated) == len(self._told.negated)

    def _agrees(self, shown: Sequence[Told]) -> bool:
        return any(each.is_negated == self._told.is_negated for each in shown)

    def _carries(self, quantity: Quantity) -> bool:
        told = [other for each in self._beside(quantity) for other in each.quantities]
        return any(_is_alike(quantity, other) for other in told) or (
            quantity.is_loose and not any(other.kind == quantity.kind for other in told)
        )

    def _beside(self, quantity: Quantity) -> Iterator[Told]:
        """The sentences in which the number may stand."""
        closest = max((near for each in self._sentences for near, _ in each), default=0.0)
        nearest = NEAR * closest
        has_rival = self._has_rival(
            quantity, [told for each in self._sentences for near, told in each if near >= nearest]
        )
        least = (BESIDE_RIVAL if has_rival else BESIDE) * closest
        for each in self._sentences:
            # "Above that" means the number of the sentence before.
            after = [*(near >= nearest for near, _ in each[1:]), False]
            for (near, told), is_before in zip(each, after, strict=False):
                if near >= least or (is_before and not has_rival):
                    yield told

    def _has_rival(self, quantity: Quantity, nearest: Sequence[Told]) -> bool:
        """Whether the closest sentences tell another number where the statement tells this one."""
        return any(
            other.kind == quantity.kind
            and not any(_is_alike(told, other) for told in self._told.quantities)
            for each in nearest
            for other in each.quantities
        )

    def _nearest(self, shown: Sequence[Told]) -> tuple[list[Told], float]:
        found = [(self._closeness(each), each) for each in shown]
        closest = max((closeness for closeness, _ in found), default=0.0)
        return [each for closeness, each in found if closeness >= NEAR * closest], closest

    def _closeness(self, shown: Told) -> float:
        """How many of the statement's words and quantities a sentence has."""
        return self._by_words(shown) + sum(
            any(_is_alike(quantity, other) for other in shown.quantities)
            for quantity in self._told.quantities
        )

    def _by_words(self, shown: Told) -> float:
        return sum(
            max((alike for other, alike in found.items() if other in shown.words), default=0.0)
            for found in self._likeness.values()
        )


def _is_alike(told: Quantity, shown: Quantity) -> bool:
    if told.unit == shown.unit:
        return told.value == shown.value
    if told.number != shown.number:
        return False
    if not told.unit:
        # "12" for "12 minutes" will do, but 8 of something is not 8 percent.
        return shown.unit not in SHARES or told.is_bare
    # In a table the unit may stand in the header.
    return not shown.unit and shown.is_bare


def _is_named(name: str, carriers: Sequence[Carrier]) -> bool:
    told = words.plain(name)
    if any(told in carrier.tokens for carrier in carriers):
        return True
    shown = frozenset[str]().union(*(carrier.words for carrier in carriers))
    parts = [DATES.get(word, word) for word in words.words(name)]
    return all(words.best_likeness(part, shown) >= words.PART for part in parts)


def _content(text: str) -> Iterator[str]:
    """The content words of a text, each once, without what numbers are told with."""
    dated = _COUNTED_DAY.sub(lambda day: COUNTED_DAYS[day[1]], words.plain(text))
    found = words.words(KANJI_NUMBER.sub(" ", dated))
    for word in dict.fromkeys(DATES.get(word, word) for word in found):
        if words.is_content(word) and not (
            words.is_number(word) or word in NUMBER_WORDS or word in UNITS or word in NEGATIONS
        ):
            yield word


def _clauses(text: str) -> list[str]:
    return [clause for clause in _CLAUSE.split(text) if clause]


def _alike(word: str, shown: frozenset[str]) -> dict[str, float]:
    found = ((other, words.likeness(word, other)) for other in shown)
    return {other: likeness for other, likeness in found if likeness}


def _sentences(text: str) -> Iterator[Span]:
    """Sentences, and the rows of tables each by itself."""
    for span in sentences(text):
        shown = span.of(text)
        is_table = shown.startswith("|") or "\n|" in shown
        yield from (row.moved(span.start) for row in lines(shown)) if is_table else [span]
