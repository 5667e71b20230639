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


# Words of which one in another's place turns a sentence around, by what they tell: each side in the
# languages of the vocabulary, folded. "mais" and "mas" mean "more" in one and "but" in another.
_TURNS: tuple[tuple[frozenset[str], ...], ...] = tuple(
    tuple(frozenset(side.split()) for side in sides)
    for sides in (
        (
            "before vor bevor vorher antes avant",
            "after nach nachdem danach depois apos despues apres",
        ),
        ("more mehr plus", "less fewer weniger menos moins"),
        (
            "first erste ersten erster erstes primeiro primeira primero primera premier premiere",
            "second zweite zweiten zweiter zweites segundo segunda deuxieme",
            "third dritte dritten dritter drittes terceiro terceira tercero tercera troisieme",
            "last letzte letzten letzter letztes ultimo ultima dernier derniere",
        ),
        (
            "may can could might darf durfen kann konnen pode podem puede pueden peut peuvent",
            "must shall muss mussen deve devem debe deben doit doivent",
        ),
        ("always immer sempre siempre toujours", "sometimes manchmal vezes veces parfois"),
        ("only nur apenas somente solo seulement", "also auch tambem tambien aussi"),
        ("above oberhalb uber acima encima dessus", "below unterhalb unter abaixo debajo dessous"),
        (
            "increase increases raise raises rise rises",
            "decrease decreases lower lowers fall falls",
        ),
        ("open opens opened", "close closes closed"),
        ("start starts started", "stop stops stopped"),
        ("enable enables enabled", "disable disables disabled"),
        ("earlier fruher", "later spater"),
    )
)

Turns = tuple[frozenset[int], ...]


def turns(text: str) -> Turns:
    """Which sides of the pairs a sentence takes, pair by pair."""
    told = frozenset(words(plain(text)))
    return tuple(
        frozenset(at for at, side in enumerate(sides) if not told.isdisjoint(side))
        for sides in _TURNS
    )


def opposes(told: Turns, shown: Turns) -> bool:
    """Whether both take sides in a pair, and no side together."""
    pairs = zip(told, shown, strict=True)
    return any(ours and theirs and ours.isdisjoint(theirs) for ours, theirs in pairs)


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
