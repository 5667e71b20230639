"""What a text calls by name: identifiers, and words with a capital where none is due."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from services.generate import words
from services.generate.units import UNITS
from services.generate.vocabulary import STOP_WORDS

# A sign of a word that is not in a script without spaces.
_SIGN = r"[^\W\u3040-\u9fff]"
_TOKEN = re.compile(
    rf"(?P<identifier>(?<!{_SIGN})(?:[^\W_]+_{_SIGN}+|[^\W\d_]*[a-z][A-Z]{_SIGN}*|[A-Z]{{2,}}{_SIGN}*"
    rf"|[^\W\d_\u3040-\u9fff]+-?\d{_SIGN}*|\d+(?:\.\d+){{2,}})"
    r"|(?<=[\u3040-\u9fff])[A-Za-z]{3,}|[A-Za-z]{3,}(?=[\u3040-\u9fff]))"
    r"|(?P<word>[^\W\d_\u3040-\u9fff]+(?:-\d+)?|[\u3040-\u9fff]+)"
    r"|(?P<stop>[^\w\s,'\u2019-])"
)
# Where every noun has a capital, one that stands right after these is a name or has no article.
_BEFORE_NAMES = frozenset({"in", "nach", "von", "aus", "bei", "mit", "zu", "durch", "uber", "ab"})

_COMMON = STOP_WORDS | UNITS.keys()


def names(text: str, language: str) -> list[str]:
    """The names in a text as written, each once, without words that only begin a sentence."""
    return list(dict.fromkeys(_found(text, language)))


def beginnings(text: str) -> list[tuple[str, str]]:
    """The capitalised words that begin sentences, names or not, each with the word after it."""
    found, before = [], ""
    tokens = [*_TOKEN.finditer(text), None]
    for token, after in pairwise(tokens):
        if token and token["word"] and not before and token[0][0].isupper():
            found.append((token[0], words.plain(after[0]) if after else ""))
        before = token[0] if token and not token["stop"] else ""
    return found


def stands_for(names: Sequence[tuple[str, str]], beginning: tuple[str, str]) -> bool:
    """Whether a beginning says of something else what one of `names` is said to do.

    "Beacon calls the lead" for "Lantern calls the lead": no article, no plural, one verb.
    """
    name, verb = beginning
    is_bare = verb not in STOP_WORDS and not name.endswith("s")
    return is_bare and any(verb == other and not _is_common(word) for word, other in names)


@lru_cache(maxsize=512)
def named(text: str) -> frozenset[str]:
    """The names in a source, folded; kept for some time, since questions share sources."""
    return frozenset(words.plain(name) for name in names(text, words.language(text)))


def _found(text: str, language: str) -> Iterator[str]:
    before = ""
    for token in _TOKEN.finditer(text):
        if token["identifier"] and not _is_common(token[0]):
            yield token[0]
        elif token["word"] and before and token[0][0].isupper() and not _is_common(token[0]):
            bears_names = language != "de" or words.plain(before) in _BEFORE_NAMES
            yield from [token[0]] if bears_names else []
        before = "" if token["stop"] else token[0]


def _is_common(word: str) -> bool:
    return len(word) == 1 or words.plain(word) in _COMMON
