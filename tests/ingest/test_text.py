import pytest

from chassis.errors import InvalidInput
from services.ingest.text import LINES, decode


def test_marks_and_line_ends_are_normalised() -> None:
    assert decode(b"\xef\xbb\xbfa\r\nb\rc\n", "x.md") == "a\nb\nc\n"


def test_separators_that_are_no_line_ends_stay() -> None:
    assert decode("a\u2028b\x85c\x0cd".encode(), "x.md") == "a\u2028b\x85c\x0cd"


@pytest.mark.parametrize(
    ("data", "reason", "message"),
    [
        (b"", "EMPTY", "x.md: the document is empty"),
        (b"a\nb\0c", "BINARY", "x.md, line 2: a zero byte"),
        (b"ok\n\nbad \xff", "NOT_UTF8", "x.md, line 3: not UTF-8 at byte 8"),
        ("ok".encode("utf-16"), "NOT_UTF8", "x.md: this is UTF-16; save it as UTF-8"),
        ("ok".encode("utf-16-le"), "BINARY", "zero byte"),
        (b"\xed\xa0\x80", "NOT_UTF8", "line 1: not UTF-8 at byte 0"),
        (b"\n" * LINES, "DOCUMENT_TOO_LARGE", "more than 100,000 lines"),
    ],
)
def test_what_is_no_text_is_refused_with_the_place(data: bytes, reason: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refusal:
        decode(data, "x.md")
    assert refusal.value.reason == reason
