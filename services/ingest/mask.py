"""Personal data out of a text: what shows its kind by its shape, by itself alone.

Names and addresses of people cannot be told from others by rules and stay.
"""

import re
from collections.abc import Iterator

from phonenumbers import Leniency, PhoneNumberMatcher

# Raised by every change of what is masked.
RULES = "masked1"

_EMAIL = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w](?:[\w-]{0,61}[\w])?\.){1,8}[^\W\d_]{2,24}(?![\w-])"
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b")
# Addresses of pages hold numbers of such length.
_CARD = re.compile(r"(?<![\w/=.-])\d(?:[ -]?\d){12,18}(?![\w/-])")
_IBAN_LENGTHS = range(15, 35)
_REMAINDER = 97
_ROUNDS = 10


def masked(text: str) -> str:
    """The text with a mark in the place of each e-mail address, phone, IBAN and card number."""
    parts, end = [], 0
    for start, stop, kind in _found(text):
        if start >= end:
            parts += [text[end:start], f"[{kind}]"]
            end = stop
    return "".join([*parts, text[end:]])


def _found(text: str) -> list[tuple[int, int, str]]:
    """Ranges in order; of two that overlap the one that begins first comes first."""
    return sorted([*_emails(text), *_ibans(text), *_cards(text), *_phones(text)])


def _emails(text: str) -> Iterator[tuple[int, int, str]]:
    return ((*found.span(), "e-mail") for found in _EMAIL.finditer(text))


def _ibans(text: str) -> Iterator[tuple[int, int, str]]:
    return ((*found.span(), "IBAN") for found in _IBAN.finditer(text) if _is_iban(found[0]))


def _is_iban(written: str) -> bool:
    account = written.replace(" ", "")
    digits = "".join(str(int(letter, 36)) for letter in account[4:] + account[:4])
    return len(account) in _IBAN_LENGTHS and int(digits) % _REMAINDER == 1


def _cards(text: str) -> Iterator[tuple[int, int, str]]:
    return ((*found.span(), "card number") for found in _CARD.finditer(text) if _is_card(found[0]))


def _is_card(written: str) -> bool:
    """Luhn's sum, over numbers of the networks' first digits."""
    digits = [int(digit) for digit in written if digit.isdigit()]
    doubled = [sum(divmod(2 * digit, _ROUNDS)) for digit in digits[-2::-2]]
    return digits[0] in {2, 3, 4, 5, 6} and (sum(digits[-1::-2]) + sum(doubled)) % _ROUNDS == 0


def _phones(text: str) -> Iterator[tuple[int, int, str]]:
    """Numbers in international form; others look like any number."""
    matcher = PhoneNumberMatcher(text, None, leniency=Leniency.VALID, max_tries=len(text))
    return ((found.start, found.end, "phone number") for found in matcher)
