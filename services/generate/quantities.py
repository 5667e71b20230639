"""The numbers in a text, each with its unit, however they are written."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from services.generate import units
from services.generate.vocabulary import STOP_WORDS
from services.generate.words import plain

_HALF_DAY, _HOUR = 12, 60
_HUNDRED, _THOUSAND = 100, 1_000
_KANJI = "[零〇一二三四五六七八九十百千两]"
_TOKEN = re.compile(
    rf"""
    (?P<hour>\d{{1,2}})(?:[:h]|\.(?=\d\d\s*uhr))(?P<minute>[0-5]\d)(?!\d)(?:\s*(?P<noon>[ap])\.?m\b)?
    |(?<![\d.,])(?P<sharp>\d{{1,2}}(?=\s*(?:uhr\b|o['\u2019]clock|時(?!間)|点))
        |{_KANJI}+(?=時(?!間)|点)|\d{{1,2}}(?=\s*[ap]\.?m\b))(?:\s*(?P<sharp_noon>[ap])\.?m\b)?
    |(?P<name>(?<![^\W_])[a-z]+-?\d[^\W_]*)
    |(?P<digits>\d{{1,3}}(?:[ '\u2019]\d{{3}})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*)
    |(?P<kanji>{_KANJI}+)
    |(?P<word>(?:(?!{_KANJI})[^\W\d_])+)
    |(?P<sign>[^\s\w])
    """,
    re.VERBOSE,
)
KANJI_NUMBER = re.compile(f"{_KANJI}+")
_TWO_WORDS = re.compile("|".join(units.TWO_WORDS))
_PARTS = re.compile(r"(?!\d{1,3}(?:\.\d{3})+$|\d{1,3}(?:,\d{3})+$)\d+(?:([.,])\d+)(?:\1\d+)+")
_DECIMAL = re.compile(r"\d{4,}[.,]\d+|\d+[.,](?:\d{1,2}|\d{4,})|0[.,]\d+")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as told, and its value in the base of its unit; none for what is only counted.

    A bare one has no word after it, as in a table's cell; a loose one may be only an article.
    """

    number: Decimal
    value: Decimal
    unit: str = ""
    is_bare: bool = False
    is_loose: bool = False

    @property
    def kind(self) -> str:
        """What is measured: time has two bases, since months differ in length."""
        return "s" if self.unit == "month" else self.unit


@dataclass(frozen=True, slots=True)
class _Token:
    """`value` is that of a number. Some are numbers only with a unit, or perhaps not even then."""

    text: str
    value: Decimal | None = None
    is_digits: bool = False
    is_clock: bool = False
    needs_unit: bool = False
    is_loose: bool = False


def quantities(text: str, language: str) -> list[Quantity]:
    """All quantities in order. `language` decides about words that are numbers in only one."""
    known = units.NUMBER_WORDS | units.NUMBERS_IN.get(language, {})
    tokens = list(_counted(list(_tokens(_TWO_WORDS.sub("%", plain(text)))), known))
    found: dict[int, Quantity] = {}
    # From the end, since "10 to 15 minutes" tells the unit of both after the second.
    for at in reversed(range(len(tokens))):
        quantity = _quantity(tokens, at, found)
        if quantity:
            found[at] = quantity
    return [found[at] for at in sorted(found)]


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match["hour"] or match["sharp"]:
            hour = _kanji(match["sharp"] or match["hour"])
            noon = match["noon"] or match["sharp_noon"]
            hour = hour % _HALF_DAY + (_HALF_DAY if noon == "p" else 0) if noon else hour
            value = Decimal(hour * _HOUR + int(match["minute"] or 0))
            yield _Token(match[0], value, is_clock=True)
        elif match["digits"]:
            yield _Token(match[0], _decimal(match[0]), is_digits=True)
        elif match["kanji"]:
            yield _Token(match[0], Decimal(_kanji(match[0])), is_digits=True, needs_unit=True)
        else:
            yield _Token(match[0])


def _counted(tokens: Sequence[_Token], known: Mapping[str, int]) -> Iterator[_Token]:
    """The tokens with number words as numbers, "two hundred and fifty" as one."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        value, after = _worded(tokens, at, known)
        if after > at:
            yield _Token("", value)
            at = after
            continue
        if token.text in units.NOON | units.MIDNIGHT:
            hours = _HALF_DAY if token.text in units.NOON else 0
            token = _Token(token.text, Decimal(hours * _HOUR), is_clock=True)
        elif token.text in units.HALVES:
            # "Half an hour": the article counts nothing.
            at += at + 1 < len(tokens) and tokens[at + 1].text in units.ONES
            token = _Token(token.text, Decimal("0.5"), needs_unit=True)
        elif token.text in units.ONES or token.text == "one":
            token = _Token(token.text, Decimal(1), needs_unit=True, is_loose=token.text != "one")
        yield token
        at += 1


def _worded(tokens: Sequence[_Token], at: int, known: Mapping[str, int]) -> tuple[Decimal, int]:
    """The number in words that begins at a token, and the token after it; at itself if none."""
    whole, part, end = Decimal(0), Decimal(0), at
    if at + 1 < len(tokens) and known.get(tokens[at + 1].text, 0) >= _HUNDRED:
        # "One hundred", "1.2 million": the number before is no word of the list.
        first = tokens[at].value if tokens[at].is_digits else Decimal(tokens[at].text == "one")
        part, end = (first, at + 1) if first else (part, at)
    while end < len(tokens):
        number = known.get(tokens[end].text)
        if number is None and part and _joins(tokens, end, part, known):
            end += 1
            continue
        if number is None or (part and number < _HUNDRED and not _fits(part, number)):
            break
        if number >= _THOUSAND:
            whole, part = whole + max(part, Decimal(1)) * number, Decimal(0)
        else:
            part = max(part, Decimal(1)) * number if number == _HUNDRED else part + number
        end += 1
    return whole + part, end


def _joins(tokens: Sequence[_Token], at: int, part: Decimal, known: Mapping[str, int]) -> bool:
    """Whether a word such as "and" or a hyphen joins what follows to the number so far."""
    if tokens[at].text not in {"-", "and", "e", "y", "et"} or at + 1 == len(tokens):
        return False
    number = known.get(tokens[at + 1].text, 0)
    return 0 < number < _HUNDRED and _fits(part, number)


def _fits(part: Decimal, number: int) -> bool:
    tens = part % _HUNDRED
    return tens == 0 or (tens >= 20 and tens % 10 == 0 and number < 10)  # noqa: PLR2004 - tens


def _quantity(tokens: Sequence[_Token], at: int, later: Mapping[int, Quantity]) -> Quantity | None:
    token = tokens[at]
    if token.value is None:
        return None
    if token.is_clock:
        return Quantity(token.value / _HOUR, token.value, units.CLOCK)
    unit = _unit(tokens, at)
    if unit:
        base, factor = unit
        return Quantity(token.value, token.value * factor, base, is_loose=token.is_loose)
    if token.needs_unit:
        return None
    if at + 2 in later and tokens[at + 1].text in units.BETWEEN:
        return _alike(token.value, tokens[at + 2].value, later[at + 2])
    is_bare = at + 1 == len(tokens) or not tokens[at + 1].text[:1].isalpha()
    return Quantity(token.value, token.value, is_bare=is_bare)


def _alike(value: Decimal, other: Decimal | None, later: Quantity) -> Quantity:
    """A quantity that shares the unit of a later one, which was written with another number."""
    factor = later.value / other if other else Decimal(1)
    return Quantity(value, value * factor, later.unit, later.is_bare)


def _unit(tokens: Sequence[_Token], at: int) -> tuple[str, Decimal] | None:
    before = tokens[at - 1].text if at else ""
    following = tokens[at + 1 : at + 3]
    for away, token in enumerate(following):
        if found := _named(token.text, is_near=away == 0 and tokens[at].is_digits):
            is_between = token.text in units.BETWEEN and at + 2 < len(tokens)
            if not (is_between and tokens[at + 2].value is not None):
                return found
        if _is_end(token) or token.text in STOP_WORDS:
            break
    return units.UNITS[before] if before in units.SIGNS else None


def _named(text: str, *, is_near: bool) -> tuple[str, Decimal] | None:
    if text.isascii():
        is_known = text in units.UNITS and (is_near or text not in units.AFTER_DIGITS)
        return units.UNITS[text] if is_known else None
    # Scripts without spaces: the unit begins what follows.
    begins = (text[:length] for length in range(min(len(text), 6), 0, -1))
    return next((units.UNITS[name] for name in begins if name in units.UNITS), None)


def _is_end(token: _Token) -> bool:
    return token.value is not None or not token.text[:1].isalpha()


def _decimal(text: str) -> Decimal | None:
    """A number in digits: the last separator is decimal unless it sets off thousands.

    None for what has more parts than a number, such as a version.
    """
    if _PARTS.fullmatch(text):
        return None
    text = re.sub("[ '\u2019]", "", text)
    last = max(text.rfind("."), text.rfind(","))
    if last < 0:
        return Decimal(text)
    whole, part = re.sub("[.,]", "", text[:last]), text[last + 1 :]
    has_both = "." in text and "," in text
    if has_both or _DECIMAL.fullmatch(text):
        return Decimal(f"{whole}.{part}")
    return Decimal(whole + part)


def _kanji(text: str) -> int:
    if text.isascii():
        return int(text)
    whole, part = 0, 0
    for sign in text:
        if sign in units.KANJI_TENS:
            whole, part = whole + max(part, 1) * units.KANJI_TENS[sign], 0
        else:
            part = part * 10 + units.KANJI[sign]
    return whole + part
