"""What turns a sentence around: negations, and which way a bound points."""

import re
from enum import Enum

from services.generate.vocabulary import LACKS, NEGATED_WITHIN, NEGATIONS, NEGATIONS_IN
from services.generate.words import plain, words

# Bounds that are worded with a negation say nothing negative.
_WORDED = re.compile(
    r"\bno (?:later|earlier|more|less|fewer|sooner|longer) than\b|\bnot only\b"
    r"|\bnicht (?:spater|fruher|mehr|weniger|langer) als\b|\bnicht nur\b"
    r"|\bnao (?:mais|menos) (?:tarde |cedo )?(?:de|do que)\b"
    r"|\bno (?:mas|menos) (?:tarde )?(?:de|que)\b"
    r"|\bpas plus (?:tard )?(?:de|que)\b|不(?:超过|超過|少于|少於|早于|晚于|同)"
)


class Bound(Enum):
    """Where a quantity is the end of what is meant, and on which side of it that lies."""

    LEAST = re.compile(
        r"\b(?:at least|no (?:less|fewer) than|mindestens|wenigstens|nicht weniger als"
        r"|pelo menos|no minimo|nao menos de|al menos|como minimo|au moins|minimum)\b"
        r"|少なくとも|至少|不少于"
    )
    MOST = re.compile(
        r"\b(?:at most|up to|no more than|hochstens|maximal|nicht mehr als|no maximo|nao mais de"
        r"|como maximo|a lo sumo|no mas de|au plus|pas plus de|maximum)\b"
        r"|最多|至多|不超过|不超過"
    )
    EARLIEST = re.compile(
        r"\b(?:at the earliest|no (?:earlier|sooner) than|fruhestens|nicht fruher als"
        r"|no antes de|nao antes de|pas avant|au plus tot|o mais cedo)\b|不早于"
    )
    LATEST = re.compile(
        r"\b(?:at the latest|no later than|spatestens|nicht spater als|o mais tardar"
        r"|a mas tardar|au plus tard)\b|不晚于"
    )


_OPPOSITES = {
    Bound.LEAST: Bound.MOST,
    Bound.MOST: Bound.LEAST,
    Bound.EARLIEST: Bound.LATEST,
    Bound.LATEST: Bound.EARLIEST,
}


def is_negated(text: str, language: str) -> bool:
    """Whether a sentence denies; "not without" does not."""
    shown = _WORDED.sub(" ", plain(text).replace("\u2019", "'"))
    told = frozenset(words(shown))
    is_denied = (
        "n't" in shown
        or any(sign in shown for sign in NEGATED_WITHIN)
        or not told.isdisjoint(NEGATIONS_IN.get(language, NEGATIONS) - LACKS)
    )
    return is_denied != (not told.isdisjoint(LACKS))


def bounds(text: str) -> frozenset[Bound]:
    shown = plain(text)
    return frozenset(bound for bound in Bound if bound.value.search(shown))


def contradicts(told: frozenset[Bound], shown: frozenset[Bound]) -> bool:
    """Whether a bound points the other way, where nothing shown points the same way."""
    return any(_OPPOSITES[bound] in shown and bound not in shown for bound in told)
