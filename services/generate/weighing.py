"""How much of a question each quotable piece carries, by words alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.generate import words
from services.generate.question import Part
from services.generate.quotes import Quotable
from services.generate.vocabulary import NEGATIONS

# A word counts in full in the piece itself, less where it only says what the piece is about.
ABOUT = 0.7
BEFORE = 0.4
# What a question asks for stands first in it: "the salary of", "which version of".
FOCUS = 1.5
# Long questions are bounded: their later words hardly decide.
MOST_TERMS = 40


@dataclass(frozen=True, slots=True)
class Weighed:
    """`coverage` is the share of the part's weighted words that the piece carries, 0 to 1.

    `novelty` counts the content words and negations that the question does not have.
    """

    piece: Quotable
    coverage: float
    novelty: int


@dataclass(frozen=True, slots=True)
class _Shown:
    own: frozenset[str]
    about: frozenset[str]
    before: frozenset[str]


def weigh(part: Part, pieces: Sequence[Quotable]) -> list[Weighed]:
    """Every piece against one part of a question, in the order of the pieces."""
    terms = part.terms[:MOST_TERMS]
    shown = [_shown(piece) for piece in pieces]
    likeness = {term: _likeness(term, shown) for term in terms}
    weights = _weights(terms, shown, likeness)
    whole = sum(weights.values())
    found = []
    for piece, seen in zip(pieces, shown, strict=True):
        carried = sum(weights[term] * _carried(likeness[term], seen) for term in terms)
        novelty = sum(_is_new(word, likeness) for word in seen.own)
        found.append(Weighed(piece, carried / whole if whole else 0.0, novelty))
    return found


def _shown(piece: Quotable) -> _Shown:
    about = " ".join((piece.source.title, *piece.source.headings))
    before = piece.context
    if piece.is_row:
        about, before = f"{about} {before}", ""
    return _Shown(*(frozenset(words.words(text)) for text in (piece.text, about, before)))


def _likeness(term: str, shown: Sequence[_Shown]) -> dict[str, float]:
    """Every word that resembles the term, and how much."""
    known = frozenset[str]().union(*(seen.own | seen.about | seen.before for seen in shown))
    found = ((word, words.likeness(term, word)) for word in known)
    return {word: likeness for word, likeness in found if likeness}


def _weights(
    terms: Sequence[str], shown: Sequence[_Shown], likeness: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Rare words weigh more, and those that no piece has weigh most."""
    weights = {}
    for at, term in enumerate(terms):
        having = sum(1 for seen in shown if not seen.own.isdisjoint(likeness[term]))
        weights[term] = math.log(1 + len(shown) / (having + 0.5)) * (1 if at else FOCUS)
    return weights


def _carried(likeness: Mapping[str, float], seen: _Shown) -> float:
    return max(
        _best(likeness, seen.own),
        ABOUT * _best(likeness, seen.about),
        BEFORE * _best(likeness, seen.before),
    )


def _best(likeness: Mapping[str, float], seen: frozenset[str]) -> float:
    return max((likeness[word] for word in seen if word in likeness), default=0.0)


def _is_new(word: str, likeness: Mapping[str, Mapping[str, float]]) -> bool:
    tells = words.is_content(word) or word in NEGATIONS
    return tells and not any(word in found for found in likeness.values())
