"""Bytes that are no request, and what the caller hears."""

import pytest

from chassis.errors import InvalidInput
from chassis.requests import read
from sluice.answer.v1.answer_pb2 import AskRequest


def test_a_message_is_read_as_its_class_reads_it() -> None:
    request = AskRequest(question="é", locale="pt")
    assert read(AskRequest.FromString, request.SerializeToString()) == request


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"\x0a\x01\xff", "question"),
        (b"\x0a\x01a\x1a\x01\xff", "locale"),
        (b"\x0a\x01a\x12\x03\x1a\x01\xfe", "filters.areas"),
        (b"\xff\xff", ""),
        (b"\x0a\x05a", ""),
    ],
)
def test_text_that_is_not_utf8_is_named_by_its_field(raw: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(AskRequest.FromString, raw)
    assert refused.value.field == field
