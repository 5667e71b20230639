"""Whether a piece has the kind of answer that is asked for: a number, a count, a price."""

import re

from services.generate import words
from services.generate.question import Part
from services.generate.quotes import Quotable

# Words between which a number still counts the later one: "22 new ticket machines".
REACH = 3

# Digits, but not those of a name such as HS-40.
_DIGITS = re.compile(r"(?<![^\W\d_])(?<![^\W\d_]-)\d")
_COUNTED = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|noon|midnight|once|twice"
    r"|daily|nightly|hourly|weekly|monthly|quarterly|yearly|annually|never|always"
    r"|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|einmal|zweimal|täglich|nächtlich"
    r"|wöchentlich|monatlich|jährlich|mittags|mitternacht"
    r"|dois|duas|três|quatro|cinco|seis|sete|oito|nove|dez|doze|meio-dia|meia-noite"
    r"|diariamente|semanalmente|mensalmente|anualmente)\b",
    re.IGNORECASE,
)
_PRICED = re.compile(
    r"[€$£]|\b(?:euros?|eur|usd|dollars?|cents?|pounds?|free|kostenlos|kostenfrei"
    r"|grátis|gratuit[oa]s?)\b",
    re.IGNORECASE,
)


def fits(part: Part, piece: Quotable) -> bool:
    if part.wants_money and not _PRICED.search(piece.text):
        return False
    if part.counted and not piece.is_row:
        return _counts(part.counted, piece.text)
    return not part.wants_number or _has_number(piece.text)


def _counts(counted: str, text: str) -> bool:
    """Whether a number stands shortly before the counted word."""
    shown = text.split()
    return any(
        words.best_likeness(counted, words.words(word)) >= words.PART
        and any(map(_has_number, shown[max(0, at - REACH) : at]))
        for at, word in enumerate(shown)
    )


def has_digits(text: str) -> bool:
    """Whether a number stands in digits, which it does in every language."""
    return bool(_DIGITS.search(text))


def _has_number(text: str) -> bool:
    return bool(_DIGITS.search(text) or _COUNTED.search(text))
