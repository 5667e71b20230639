"""An answer from the sources' own sentences, or none where they do not carry one.

Two kinds of evidence are mixed: the share of the question's words that a sentence carries, and the
score with which its source was retrieved. Neither decides alone: on our own gold questions and on
public runbooks, right and wrong sources overlap in both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from services.generate import question as questions
from services.generate import words
from services.generate.evidence import Scores, Source
from services.generate.fit import fits, has_digits
from services.generate.question import Part, Question
from services.generate.quotes import Quotable, quotables
from services.generate.weighing import Weighed, weigh

MOST_QUOTES = 3
BY_WORDS = 0.7
UNKNOWN_SCORE = 0.5
# What is left of the support of a piece that has no number, price or name where one is asked for.
MISFIT = 0.5
# A name that more documents than this share tells nothing about any of them.
SHARED_NAME = 2
# Further quotations of a part come this near to its best one.
NEAR = 0.75
# For the order alone: what only repeats the question tells little.
REPEATED, BARE = 0.5, 0.8
# A question in another language than the source shares few words with it, names and cognates; then
# the source must stand out from every other document. Of 15 such questions that our corpora answer
# 3 pass by this rule, of 12 that they do not answer none.
FOREIGN_SCORE = 0.65
FOREIGN_LEAD = 0.2


@dataclass(frozen=True, slots=True)
class Calibration:
    """Where evidence is enough, for one embedding profile.

    Cosine scores count linearly, from 0 at `score_low` to 1 at `score_high`; a quotation needs
    `least_support`, 0 to 1.
    """

    score_low: float
    score_high: float
    least_support: float


@dataclass(frozen=True, slots=True)
class _Judged:
    """`support` is the evidence that a piece answers, `rank` how well it would read, 0 to 1.

    `is_alike` says that it shares a word with the question at all.
    """

    piece: Quotable
    support: float
    rank: float
    is_alike: bool


def extract(
    text: str, sources: Sequence[Source], scores: Scores, calibration: Calibration
) -> tuple[Quotable, ...]:
    """At most MOST_QUOTES pieces in source order; none when the evidence is too weak."""
    asked = questions.read(text)
    if not _knows_names(asked, sources):
        return ()
    relevance = _relevance(sources, scores, calibration)
    pieces = [piece for source in sources for piece in quotables(source)]
    found: list[list[_Judged]] = []
    for part in asked.parts[:MOST_QUOTES]:
        judged = _judged(part, pieces, relevance)
        found.append(
            _supported(judged, calibration.least_support)
            or _foreign(asked, part, judged, relevance)
        )
    return _in_order(_fewest(found), pieces)


def _knows_names(asked: Question, sources: Sequence[Source]) -> bool:
    """Whether every name in the question occurs at all: what is not named is not answered."""
    return all(_naming(name, sources) for name in asked.names)


def _naming(name: str, sources: Sequence[Source]) -> set[str]:
    """The documents in which a name occurs, as far as the sources show them."""
    return {source.document for source in sources if _names(source, name)}


def _titled(name: str, sources: Sequence[Source]) -> set[str]:
    """The documents that bear the name, spelled apart or not: others only mention it."""
    return {
        source.document
        for source in sources
        if any(_joined(title) == name for title in (source.title, *source.headings[:1]))
    }


def _joined(title: str) -> str:
    return "".join(words.fold(title).split())


def _names(source: Source, name: str) -> bool:
    """Whether the name occurs whole, or all its words do."""
    everything = "\n".join((source.title, *source.headings, source.text))
    if name in words.fold(everything):
        return True
    known = frozenset(words.words(everything))
    return all(words.best_likeness(word, known) >= words.PART for word in words.words(name))


def _relevance(
    sources: Sequence[Source], scores: Scores, calibration: Calibration
) -> dict[str, float]:
    """What the retrieval says of each source, 0 to 1, by label."""
    if scores is not Scores.COSINE:
        return dict.fromkeys((source.label for source in sources), UNKNOWN_SCORE)
    low, width = calibration.score_low, calibration.score_high - calibration.score_low
    return {source.label: min(1.0, max(0.0, (source.score - low) / width)) for source in sources}


def _judged(part: Part, pieces: Sequence[Quotable], relevance: dict[str, float]) -> list[_Judged]:
    sources = list({piece.source.label: piece.source for piece in pieces}.values())
    naming = [_titled(name, sources) or _naming(name, sources) for name in part.names]
    telling = [documents for documents in naming if len(documents) <= SHARED_NAME]
    found = []
    for weighed in weigh(part, pieces):
        label = weighed.piece.source.label
        support = BY_WORDS * weighed.coverage + (1 - BY_WORDS) * relevance[label]
        is_named = all(weighed.piece.source.document in documents for documents in telling)
        support *= 1.0 if is_named and fits(part, weighed.piece) else MISFIT
        rank = support * _telling(weighed)
        found.append(_Judged(weighed.piece, support, rank, is_alike=weighed.coverage > 0))
    return found


def _telling(weighed: Weighed) -> float:
    if weighed.novelty == 0:
        return REPEATED
    return BARE if weighed.novelty == 1 and not weighed.piece.is_row else 1.0


def _supported(judged: Sequence[_Judged], least: float) -> list[_Judged]:
    """The pieces that answer a part, the best first."""
    ranked = sorted((j for j in judged if j.support >= least), key=lambda j: -j.rank)
    return [j for j in ranked if j.rank >= NEAR * ranked[0].rank]


def _foreign(
    asked: Question, part: Part, judged: Sequence[_Judged], relevance: dict[str, float]
) -> list[_Judged]:
    """Pieces of a source in another language, where it stands out from all other documents."""
    source = max((j.piece.source for j in judged), key=lambda s: relevance[s.label], default=None)
    if source is None or relevance[source.label] < FOREIGN_SCORE:
        return []
    others = [
        relevance[j.piece.source.label]
        for j in judged
        if j.piece.source.document != source.document
    ]
    spoken = words.language(source.text)
    stands_out = relevance[source.label] - max(others, default=0.0) >= FOREIGN_LEAD
    if not stands_out or not spoken or not asked.language or spoken == asked.language:
        return []
    own = [j for j in judged if j.piece.source is source]
    if not any(j.is_alike for j in own):
        return []
    ranked = sorted(own, key=lambda j: -j.rank)[:MOST_QUOTES]
    if part.wants_number and not any(has_digits(j.piece.text) for j in ranked):
        return []
    return ranked


def _fewest(found: Sequence[Sequence[_Judged]]) -> list[Quotable]:
    """The best of every part first, then the second of every part, up to the limit.

    What two sources say word for word is quoted once.
    """
    depth = max(map(len, found), default=0)
    turns = (part[turn].piece for turn in range(depth) for part in found if turn < len(part))
    said: dict[str, Quotable] = {}
    for piece in turns:
        said.setdefault(piece.text, piece)
    return list(said.values())[:MOST_QUOTES]


def _in_order(chosen: Sequence[Quotable], pieces: Sequence[Quotable]) -> tuple[Quotable, ...]:
    return tuple(piece for piece in pieces if piece in chosen)
