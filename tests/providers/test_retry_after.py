from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.retry_after import LONGEST, parse

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "4"}, 4),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90),
        ({"retry-after": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:10"}, 10),
        ({"retry-after": "1e12"}, LONGEST),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_seconds_are_read_from_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert parse(headers, NOW) == seconds


@given(st.text(), st.text())
def test_no_header_can_break_it(seconds: str, milliseconds: str) -> None:
    wait = parse({"retry-after": seconds, "retry-after-ms": milliseconds}, NOW)
    assert wait is None or 0 <= wait <= LONGEST
