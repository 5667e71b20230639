"""What a question asks for: its parts, the words that matter in each, and what it names."""

import re
from dataclasses import dataclass

from services.generate import words

# Where a question goes on to a second one. The capital letter that follows a full stop keeps
# abbreviations and decimals together.
_CUT = re.compile(
    r"(?<=[?!])\s+|(?<=[.])\s+(?=[A-ZÀ-Þ])"
    r"|,?\s+(?:and|und|e)\s+(?=(?:(?:in|at|to|for|by|until|since|within|bis|ab|in|até|a)\s+)?"
    r"(?:how|who|whom|what|when|where|which|why|wie|wer|wen|wem|was|wann|wo|welche[rsmn]?|warum"
    r"|como|quem|qual|quais|que|quando|onde|quant[oa]s?)\b)",
    re.IGNORECASE,
)
# Questions whose answer is a number or a period.
_QUANTITY = re.compile(
    r"\b(?:how\s+(?:many|much|long|often|far|high|fast|quickly|soon|late|old|big|large|heavy)"
    r"|until\s+when|by\s+when|(?:at|to|up\s+to)\s+what|what\s+(?:time|amount|percentage|share)"
    r"|when\s+(?:was|were|did)|wann\s+wurden?|quando\s+(?:foi|foram)"
    r"|wie\s*(?:viele?|lange?|oft|weit|hoch|schnell|spät|groß|schwer|alt)|(?:bis|ab)\s+wann"
    r"|quant[oa]s?|até\s+quando|com\s+que\s+frequência|a\s+que\s+(?:horas?|velocidade))\b",
    re.IGNORECASE,
)
# What is counted in such a question.
_COUNTED = re.compile(r"\b(?:how\s+many|wie\s*viele|quant[oa]s)\s+(\w+)", re.IGNORECASE)
# Questions whose answer is a price.
_MONEY = re.compile(
    r"\b(?:costs?|price|fees?|fine|salary|kostet|kosten|preis|gebühr|gehalt"
    r"|custam?|preço|taxa|multa|salário)\b",
    re.IGNORECASE,
)
# A word with a capital or digit inside, or all in capitals: a name in every language.
_IDENTIFIER = re.compile(r"[^\W_]+_\w+|\w*[a-z][A-Z]\w*|[A-Z]{2,}\w*|[^\W\d_]+\d\w*")
_CAPITALISED = re.compile(r"\b[A-ZÀ-Þ][^\W\d_]+\b")
_BARE = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is asked. `terms` are its content words in order, the focus first.

    `names` are the proper names and identifiers in it, folded; `counted` is the word after "how
    many", folded, or empty.
    """

    terms: tuple[str, ...]
    names: tuple[str, ...]
    counted: str
    wants_number: bool
    wants_money: bool


@dataclass(frozen=True, slots=True)
class Question:
    """`names` are those of the whole text, told or asked; `language` may be empty."""

    parts: tuple[Part, ...]
    names: tuple[str, ...]
    language: str


def read(text: str) -> Question:
    """The question as its words show it; parts without content words are left out."""
    language = words.language(text)
    names = _names(text, language)
    read_parts = (_part(piece, names) for piece in _pieces(text))
    parts = tuple(part for part in read_parts if part.terms)
    return Question(parts, names, language)


def _pieces(text: str) -> list[str]:
    """The parts that ask; what is only told before them belongs to the first that asks."""
    pieces = [piece for piece in _CUT.split(text) if piece and piece.strip()]
    asking = [piece for piece in pieces if not piece.rstrip().endswith(".")]
    return asking or pieces


def _part(piece: str, names: tuple[str, ...]) -> Part:
    folded = words.fold(piece)
    counted = _COUNTED.search(piece)
    return Part(
        terms=tuple(words.content(piece)),
        names=tuple(name for name in names if name in folded),
        counted=words.fold(counted[1]) if counted else "",
        wants_number=bool(_QUANTITY.search(piece)),
        wants_money=bool(_MONEY.search(piece)),
    )


def _names(text: str, language: str) -> tuple[str, ...]:
    found = [token for token in _BARE.findall(text) if _IDENTIFIER.fullmatch(token)]
    if language != "de":  # where every noun has a capital, a capital says nothing
        found += [
            token[0]
            for token in _CAPITALISED.finditer(text)
            if not _begins_sentence(text, token.start())
        ]
    return tuple(dict.fromkeys(words.fold(token) for token in found))


def _begins_sentence(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \"'“„«(¿")
    return not before or before[-1] in ".?!:"
