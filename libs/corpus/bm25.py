"""Words as sparse vectors: the same for passages and for questions, in any language.

A passage's weight of a term is BM25's without the term's rarity, which the index multiplies in
(Robertson and Zaragoza 2009, with the usual K1 and B):

    f (K1 + 1) / (f + K1 (1 - B + B length / AVERAGE_LENGTH))

f is how often the term occurs, length how many main terms there are. Which terms a text has:

- A word counts by its first PREFIX letters, which joins most inflected forms without knowing the
  language. The whole word, where it is longer, counts a little besides: compounds differ in it.
- A word with a digit in it counts whole: it is a number or a name.
- In scripts without spaces each pair of neighbours counts, and of Han each one a little besides.

Case, accents and compatibility forms make no difference.
"""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import regex  # type: ignore[import-untyped] # published without types

from corpus.function_words import FUNCTION_WORDS
from corpus.points import StoredPassage

# Names the rules of this file. Whoever changes one raises it, which is another collection.
VERSION: Final = "terms1"

K1: Final = 1.2
B: Final = 0.75
AVERAGE_LENGTH: Final = 128
PREFIX: Final = 6
BESIDES: Final = 0.2  # weight of what counts a little

_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}"
    r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\u30fc"
)
_RUN = regex.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)|[[\p{{L}}\p{{N}}\p{{M}}]--[{_UNSPACED}]]+",
    regex.VERSION1,
)
_CHARACTER = regex.compile(r"\X")
_HAN = regex.compile(r"\p{Han}")
_DIGIT = regex.compile(r"\p{Nd}")
# Of Latin, Greek, Cyrillic, Arabic and Hebrew; marks of other scripts are vowels of their own.
_ACCENT = regex.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]")
_REMEMBERED = 65_536


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Weights of terms by their numbers, 32 bits each; no number twice, in rising order."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


def passage_vector(passage: StoredPassage) -> SparseVector:
    """What is stored for a passage: of its title, its headings and its text."""
    # The title is often the first heading, and means no more for being said twice.
    heads = dict.fromkeys([passage.title, *passage.heading_path])
    return document_vector("\n".join([*heads, passage.text]))


def document_vector(text: str) -> SparseVector:
    """Weights of the terms of a text that is to be found; without terms, an empty vector."""
    main, besides = _terms(_runs(text))
    scale = K1 * (1 - B + B * len(main) / AVERAGE_LENGTH)
    counts = Counter(besides)
    counts.update(main)
    return _vector({term: f * (K1 + 1) / (f + scale) for term, f in counts.items()})


def question_vector(text: str) -> SparseVector:
    """Weights of the terms that are looked for, each once however often it is said.

    Function words are looked for only where there is nothing else.
    """
    runs = _runs(text)
    telling = [run for run in runs if run.text not in FUNCTION_WORDS]
    main, besides = _terms(telling or runs)
    return _vector(dict.fromkeys(besides, BESIDES) | dict.fromkeys(main, 1.0))


def _vector(weights: dict[str, float]) -> SparseVector:
    # Of two terms with one number, which happens once in some thousand vocabularies, the last wins.
    numbered = sorted({_number(term): weight for term, weight in weights.items()}.items())
    return SparseVector(
        tuple(number for number, _ in numbered), tuple(weight for _, weight in numbered)
    )


@lru_cache(maxsize=_REMEMBERED)
def _number(term: str) -> int:
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=4).digest(), "big")


@dataclass(frozen=True, slots=True)
class _Run:
    """A word, or characters of a script without spaces up to the next other one."""

    text: str
    unspaced: bool


def _runs(text: str) -> list[_Run]:
    return [_Run(run[0], run["unspaced"] is not None) for run in _RUN.finditer(_folded(text))]


def _terms(runs: Iterable[_Run]) -> tuple[list[str], list[str]]:
    """The main terms in order, and those that count a little."""
    main: list[str] = []
    besides: list[str] = []
    for run in runs:
        if run.unspaced:
            characters = _CHARACTER.findall(run.text)
            main.extend(_pairs(characters))
            besides.extend(_alone(characters))
        else:
            main.append(_beginning(run.text))
            besides.extend(_rest(run.text))
    return main, besides


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _ACCENT.sub("", decomposed))


def _beginning(word: str) -> str:
    return word if _DIGIT.search(word) else word[:PREFIX]


def _rest(word: str) -> Iterator[str]:
    if len(word) > PREFIX and not _DIGIT.search(word):
        yield word


def _pairs(characters: list[str]) -> Iterable[str]:
    """Each two neighbours; a character without neighbours stands for itself."""
    return map("".join, pairwise(characters)) if len(characters) > 1 else characters


def _alone(characters: list[str]) -> Iterable[str]:
    return filter(_HAN.match, characters) if len(characters) > 1 else ()
