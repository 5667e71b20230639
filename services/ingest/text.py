"""Bytes to text: decoded strictly, one kind of line end, nothing replaced."""

import codecs

from chassis.errors import InvalidInput

# What a parser builds for a line outweighs the line by far.
LINES = 100_000


def decode(data: bytes, name: str) -> str:
    """The normalised text: no byte order mark, every line end a line feed.

    Raises InvalidInput that names the document and the place: EMPTY, BINARY, NOT_UTF8 or
    DOCUMENT_TOO_LARGE for more than LINES lines.
    """
    if not data:
        raise InvalidInput(f"{name}: the document is empty", field="data", reason="EMPTY")
    _refuse_binary(data, name)
    text = _decoded(data, name).replace("\r\n", "\n").replace("\r", "\n")
    check_size(text, name)
    return text


def check_size(text: str, name: str) -> None:
    """Raises InvalidInput (DOCUMENT_TOO_LARGE) for more than LINES lines."""
    if text.count("\n") >= LINES:
        raise InvalidInput(
            f"{name}: more than {LINES:,} lines; divide it",
            field="data",
            reason="DOCUMENT_TOO_LARGE",
        )


def _refuse_binary(data: bytes, name: str) -> None:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidInput(
            f"{name}: this is UTF-16; save it as UTF-8", field="data", reason="NOT_UTF8"
        )
    zero = data.find(b"\0")
    if zero >= 0:
        raise InvalidInput(
            f"{name}, line {_line(data, zero)}: a zero byte, so this is no text",
            field="data",
            reason="BINARY",
        )


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{name}, line {_line(data, error.start)}: not UTF-8 at byte {error.start};"
            " save it as UTF-8",
            field="data",
            reason="NOT_UTF8",
        ) from error


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1
