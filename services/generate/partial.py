"""The answer object while it is still coming: its status, and its text as far as it is known."""

import re
from collections.abc import Generator

from services.generate.contract import STATUSES, InvalidOutput

_WHITE = frozenset(" \t\r\n")
_FENCE = "```"
# What stands in a string for itself: no escape, no control character, no half of a pair.
_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')
_ESCAPED = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_HEX = frozenset("0123456789abcdefABCDEF")
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_SCALAR = re.compile(r"[-+.0-9A-Za-z]")
_CLOSING = {"{": "}", "[": "]"}
_TOLD_ONCE = frozenset({"status", "answer", "source_ids"})

# A parser that stops wherever the text does, and goes on there with the next delta.
_Steps = Generator[None, None, None]
_Sign = Generator[None, None, str]


class Partial:
    """Reads one reply in deltas that are split anywhere, each character once.

    It finds what the contract has to say about a reply as it grows; the whole reply is still to
    be read by the contract, which is stricter.
    """

    def __init__(self) -> None:
        self.status = ""
        self._delta, self._at = "", 0
        self._told: list[str] = []
        self._names: set[str] = set()
        self._steps = self._reply()

    def take(self, delta: str) -> str:
        """The text that the delta adds to the answer. Raises InvalidOutput."""
        self._delta, self._at = delta, 0
        self._told.clear()
        next(self._steps, None)
        return "".join(self._told)

    def _reply(self) -> _Steps:
        yield from self._white()
        is_fenced = (yield from self._peek()) == _FENCE[0]
        if is_fenced:
            yield from self._fence()
        yield from self._sign("{")
        yield from self._fields()
        for sign in _FENCE if is_fenced else "":
            yield from self._sign(sign)
        yield from self._white()
        raise _broken("more than one object")

    def _fence(self) -> _Steps:
        line = ""
        while (sign := (yield from self._next())) != "\n":
            line += sign
            if not f"{_FENCE}json".startswith(line.rstrip(" \t\r")):
                raise _broken("a strange fence")
        if line.rstrip() not in {_FENCE, f"{_FENCE}json"}:
            raise _broken("a strange fence")

    def _fields(self) -> _Steps:
        yield from self._white()
        if (yield from self._peek()) == "}":
            self._at += 1
            return
        while True:
            yield from self._field()
            after = yield from self._sign(",}")
            if after == "}":
                return

    def _field(self) -> _Steps:
        name = yield from self._text()
        if name in _TOLD_ONCE and name in self._names:
            raise _broken("a field twice")
        self._names.add(name)
        yield from self._sign(":")
        if name == "status":
            self.status = yield from self._status()
        elif name == "answer":
            yield from self._sign('"')
            yield from self._string(self._told)
        else:
            yield from self._skip()

    def _status(self) -> _Sign:
        status = yield from self._text()
        if status not in STATUSES:
            raise _broken("status")
        return status

    def _skip(self) -> _Steps:
        """One value of any kind. What is open is counted here: replies nest deeper than calls."""
        awaited: list[str] = []
        while True:
            yield from self._white()
            sign = yield from self._next()
            if sign in _CLOSING:
                awaited.append(_CLOSING[sign])
            elif awaited and sign == awaited[-1]:
                awaited.pop()
            elif sign == '"':
                yield from self._string([])
            elif _SCALAR.match(sign):
                yield from self._scalar()
            elif not awaited or sign not in ",:":
                raise _broken("syntax")
            if not awaited:
                return

    def _scalar(self) -> _Steps:
        while _SCALAR.match((yield from self._peek())):
            self._at += 1

    def _text(self) -> _Sign:
        read: list[str] = []
        yield from self._sign('"')
        yield from self._string(read)
        return "".join(read)

    def _string(self, read: list[str]) -> _Steps:
        """The rest of a string after its opening quote, decoded into `read` as it comes."""
        while True:
            yield from self._peek()
            if plain := _PLAIN.match(self._delta, self._at):
                read.append(plain[0])
                self._at = plain.end()
                continue
            sign = yield from self._next()
            if sign == '"':
                return
            if sign != "\\":
                raise _broken("a character that must be escaped")
            read.append((yield from self._escaped()))

    def _escaped(self) -> _Sign:
        sign = yield from self._next()
        if sign != "u":
            return _known(_ESCAPED.get(sign))
        code = yield from self._code()
        if code not in _HIGH and code not in _LOW:
            return chr(code)
        # The second half of a pair is an escape of its own.
        begin = (yield from self._next()) + (yield from self._next())
        low = yield from self._code()
        if code not in _HIGH or begin != r"\u" or low not in _LOW:
            raise _broken("half a character")
        return (chr(code) + chr(low)).encode("utf-16", "surrogatepass").decode("utf-16")

    def _code(self) -> Generator[None, None, int]:
        digits = ""
        for _ in range(4):
            digits += yield from self._next()
        if not _HEX.issuperset(digits):
            raise _broken("an escape")
        return int(digits, 16)

    def _sign(self, awaited: str) -> _Sign:
        """One of the awaited signs, after white space."""
        yield from self._white()
        sign = yield from self._next()
        if sign not in awaited:
            raise _broken("syntax")
        return sign

    def _white(self) -> _Steps:
        while (yield from self._peek()) in _WHITE:
            self._at += 1

    def _next(self) -> _Sign:
        sign = yield from self._peek()
        self._at += 1
        return sign

    def _peek(self) -> _Sign:
        while self._at == len(self._delta):
            yield
        return self._delta[self._at]


def _known(sign: str | None) -> str:
    if sign is None:
        raise _broken("an escape")
    return sign


def _broken(what: str) -> InvalidOutput:
    return InvalidOutput(f"not the agreed JSON: {what}")
