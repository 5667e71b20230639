from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.retry_after import LONGEST, parse

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)


def date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "-250"}, 0),
        ({"retry-after-ms": "1e300"}, LONGEST),
        ({"retry-after-ms": "soon", "retry-after": "4"}, 4),
        ({"retry-after": date(NOW + timedelta(seconds=90))}, 90),
        ({"retry-after": date(NOW - timedelta(days=1))}, 0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:10"}, 10),
        ({"retry-after": "Mon, 30 Nov 9999 12:00:10 GMT"}, LONGEST),
        ({"retry-after": "Mon, 30 Nov 99999999999999999999 12:00:10 GMT"}, None),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:10 +9999999999999999"}, None),
        ({"retry-after": "1e12"}, LONGEST),
        ({"retry-after": "86400"}, LONGEST),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_seconds_are_read_from_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert parse(headers, NOW) == seconds


def test_a_date_is_compared_with_the_clock_that_wrote_it() -> None:
    headers = {"date": date(LATER), "retry-after": date(LATER + timedelta(seconds=7))}
    assert parse(headers, NOW) == 7


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("1s", 1),
        ("6m0s", LONGEST),
        ("1m30s", 90),
        ("1m2.5s", 62.5),
        ("20ms", 0.02),
        ("1d2h", LONGEST),
        ("17", 17),
        ("0s", 0),
        ("-1s", None),
        ("1s soon", None),
        ("", None),
        ("1" * 5_000 + "s", LONGEST),
    ],
)
def test_without_retry_after_the_quotas_reset_counts(duration: str, seconds: float | None) -> None:
    headers = {"x-ratelimit-reset-requests": duration}
    assert parse(headers, NOW) == (seconds if seconds is None else pytest.approx(seconds))
    assert parse({**headers, "retry-after": "3"}, NOW) == 3


@pytest.mark.parametrize(
    ("remaining_requests", "remaining_tokens", "seconds"),
    [("0", "400", 2), ("12", "0", 30), ("0", "0", 30), ("12", "400", 30), ("-1", "-1", 30)],
)
def test_the_quota_that_is_used_up_says_when(
    remaining_requests: str, remaining_tokens: str, seconds: float
) -> None:
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-requests": remaining_requests,
        "x-ratelimit-remaining-tokens": remaining_tokens,
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-reset-tokens": "30s",
    }
    assert parse(headers, NOW) == seconds


@given(
    st.fixed_dictionaries(
        dict.fromkeys(
            ["retry-after", "retry-after-ms", "date", "x-ratelimit-reset-requests"],
            st.text()
            | st.from_regex(r"\A-?[0-9]{1,400}(\.[0-9]+)?(ms|s|m|h|d)?\Z")
            | st.from_regex(
                r"\AMon, [0-9]{1,30} Nov [0-9]{1,30} [0-9]{1,9}:00:[0-9]{1,9} [+-][0-9]{4}\Z"
            ),
        )
    )
)
def test_no_header_can_break_it(headers: dict[str, str]) -> None:
    wait = parse(headers, NOW)
    assert wait is None or 0 <= wait <= LONGEST
