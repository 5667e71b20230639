from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.generate.quantities import quantities
from tests.generate.split import ANSWERS


def read(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(f"{q.value.normalize():f}", q.unit) for q in quantities(text, language)]


@pytest.mark.parametrize(
    "text",
    ["1,000", "1.000", "1 000", "1\u202f000", "1'000", "1000", "one thousand", "tausend", "mil"],
)
def test_a_number_is_one_however_it_is_written(text: str) -> None:
    assert read(f"{text} euros") == [("1000", "euro")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 minutes, 10 min, 10min, ten minutes", [("600", "s")] * 4),
        ("5 ms or 5 s", [("0.005", "s"), ("5", "s")]),
        ("24 hours, 1 day, a day, one day", [("86400", "s")] * 4),
        ("12 months, one year", [("12", "month")] * 2),
        ("64 MB, 64 GB", [("64000000", "byte"), ("64000000000", "byte")]),
        ("8 percent, 8 per cent, 8 %, 8%", [("8", "%")] * 4),
        ("\u20ac2,500, 2.500 euros, EUR 2500", [("2500", "euro")] * 3),
        ("10 to 15 minutes, 5-10 days", [
            ("600", "s"), ("900", "s"), ("432000", "s"), ("864000", "s"),
        ]),
        ("five working days, half an hour", [("432000", "s"), ("1800", "s")]),
        ("two hundred and fifty ships, 1.2 million", [("250", ""), ("1200000", "")]),
        ("09:30, 9:30 am, 9 am, 3:30 pm, noon", [
            ("570", "clock"), ("570", "clock"), ("540", "clock"), ("930", "clock"),
            ("720", "clock"),
        ]),
        ("SEV1 on FA-7 has version 1.2.3", []),
        ("one of the ships", []),
    ],
)  # fmt: skip
def test_numbers_are_read_with_their_units(text: str, expected: list[tuple[str, str]]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("2,10 Meter und f\u00fcnfundzwanzig Tage", "de", [("2.1", "m"), ("2160000", "s")]),
        ("9 Uhr, 15.30 Uhr", "de", [("540", "clock"), ("930", "clock")]),
        ("dezoito horas, 60 por cento, 38 n\u00f3s", "pt", [
            ("64800", "s"), ("60", "%"), ("38", "knot"),
        ]),
        ("dos horas y treinta y cinco euros", "es", [("7200", "s"), ("35", "euro")]),
        ("objetos dos navios", "pt", []),
        ("vingt-cinq jours, 3 To, 18h30", "fr", [
            ("2160000", "s"), ("3000000000000", "byte"), ("1110", "clock"),
        ]),
        ("45分前、九時、9時間、20キログラム", "ja", [
            ("2700", "s"), ("540", "clock"), ("32400", "s"), ("20000", "g"),
        ]),
        ("备份保存三十五天", "zh", [("3024000", "s")]),
    ],
)  # fmt: skip
def test_other_languages_have_their_own_words_and_signs(
    text: str, language: str, expected: list[tuple[str, str]]
) -> None:
    assert read(text, language) == expected


@settings(deadline=None)
@given(ANSWERS | st.text(alphabet="0123456789., \u2019:ahm%-/ twoe", max_size=30))
def test_no_text_breaks_it(text: str) -> None:
    assert all(q.value >= Decimal(0) for q in quantities(text, "en"))
