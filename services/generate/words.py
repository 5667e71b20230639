"""Words as evidence: what a question and a sentence have in common, across inflections."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import filterfalse

from services.generate.vocabulary import BASE_FORMS, ENDINGS, LANGUAGES, STOP_WORDS

_LEAST_STEM = 4

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+")
_THOUSANDS = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")
# Scripts that put no spaces between words.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")

EQUAL, RELATED, PART = 1.0, 0.8, 0.7
_LEAST_SHARED = 5
_MOST_DIFFERENT = 4


def fold(text: str) -> str:
    """Text without case, accents and the separators of thousands."""
    return _THOUSANDS.sub("", plain(text))


def plain(text: str) -> str:
    """Text without case and accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    if decomposed.isascii():
        return decomposed
    bare = "".join(filterfalse(unicodedata.combining, decomposed))
    return unicodedata.normalize("NFC", bare)


def words(text: str) -> list[str]:
    """Folded words in order.

    Numbers stay whole, CamelCase falls into its words, and scripts without spaces into pairs.
    """
    found: list[str] = []
    for token in _TOKEN.findall(fold(_CAMEL.sub(" ", text))):
        found.extend(_pairs(token) if _UNSPACED.fullmatch(token) else [token])
    return found


def content(text: str) -> list[str]:
    """The words that carry a subject, each once, in order."""
    return [word for word in dict.fromkeys(words(text)) if is_content(word)]


def is_content(word: str) -> bool:
    return word not in STOP_WORDS and (len(word) > 1 or word.isdigit())


def is_number(word: str) -> bool:
    return word[0].isdigit()


def language(text: str) -> str:
    """`en`, `de` or `pt`, by the stop words; empty when they do not tell."""
    found = Counter(
        name for word in words(text) for name, listed in LANGUAGES.items() if word in listed
    ).most_common(2)
    if not found or (len(found) > 1 and found[0][1] == found[1][1]):
        return ""
    return found[0][0]


def best_likeness(word: str, others: Iterable[str]) -> float:
    return max((likeness(word, other) for other in others), default=0.0)


@lru_cache(maxsize=65_536)
def likeness(one: str, other: str) -> float:
    """How far two words are one: 1 for equal stems, less for a shared part, else 0."""
    if one == other:
        return EQUAL
    if is_number(one) or is_number(other):
        return 0.0
    if _stem(one) == _stem(other):
        return EQUAL
    shorter, longer = sorted((one, other), key=len)
    shared = _shared(one, other)
    if shared >= _LEAST_SHARED and len(longer) - shared <= _MOST_DIFFERENT:
        return RELATED
    # Compounds: the part of a long word that stands by itself elsewhere.
    if len(shorter) >= _LEAST_SHARED and longer.startswith(shorter) | longer.endswith(shorter):
        return PART
    return 0.0


@cache
def _stem(word: str) -> str:
    word = BASE_FORMS.get(word, word)
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word[: -len(ending)]
    return word


def _shared(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]
