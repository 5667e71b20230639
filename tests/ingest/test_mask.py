import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.mask import masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ask ann.lee+x@mail.skarholm.io.", "Ask [e-mail]."),
        ("[Ann](mailto:ann@skarholm.io)", "[Ann](mailto:[e-mail])"),
        ("Call +49 30 901820 or +44 20 7946 0958.", "Call [phone number] or [phone number]."),
        ("To DE89 3704 0044 0532 0130 00 today", "To [IBAN] today"),
        ("GB82WEST12345698765432", "[IBAN]"),
        ("Card 4111 1111 1111 1111, 5500-0000-0000-0004", "Card [card number], [card number]"),
    ],
)
def test_personal_data_gives_way_to_its_kind(text: str, expected: str) -> None:
    assert masked(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2.3.4 of 2026-11-30 10:00",
        "GB82 WEST 1234 5698 7654 31 has a wrong sum",
        "4111 1111 1111 1112 has a wrong sum",
        "https://pager.example/triggers/4111111111111111",
        "user@localhost and @handle and a@b",
        "call 112 or 0800 123",
        "0000 0000 0000 0000",
    ],
)
def test_what_only_resembles_it_stays(text: str) -> None:
    assert masked(text) == text


@given(st.text(max_size=300))
def test_masking_again_changes_nothing(text: str) -> None:
    once = masked(text)
    assert masked(once) == once
