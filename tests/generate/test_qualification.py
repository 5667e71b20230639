import json
from dataclasses import replace
from pathlib import Path

import pytest

from capacity import Limits
from chassis.identity import AccessLevel
from providers.endpoint import ChatOptions, Endpoint
from services.generate.qualification import (
    SCHEMA_VERSION,
    Standard,
    Unqualified,
    fingerprint,
    host,
    qualified,
    read,
    validation_version,
)

LIMITS = Limits(requests_per_minute=60, tokens_per_minute=60_000, in_flight=4, max_reservation=9)
ENDPOINT = Endpoint(
    id="small",
    base_url="https://models.example:8443/v1",
    model="small",
    pool="answers",
    limits=LIMITS,
    options=ChatOptions(output_tokens=1_000, temperature=0.0),
    attempt_seconds=30,
)
PRINT = fingerprint(ENDPOINT)
STANDARD = Standard(PRINT, SCHEMA_VERSION, validation_version(0.5))
WRITTEN = {
    "format": 1,
    "report_id": "gold-2026-11-30",
    "fingerprint": PRINT,
    "model": "small",
    "host": "models.example:8443",
    "served_model": "small-2026-10",
    "instructions_versions": ["en-1", "de-1"],
    "schema_version": SCHEMA_VERSION,
    "validation_version": "4:0.5",
    "levels": ["public", "team"],
    "mode": "review",
    "passed": True,
    "evaluated_at": "2026-11-30T08:00:00Z",
}


def written(folder: Path, **changed: object) -> Path:
    path = folder / "report.json"
    path.write_text(json.dumps({**WRITTEN, **changed}))
    return path


def test_a_report_that_holds_says_what_it_allows(tmp_path: Path) -> None:
    found = qualified(read(written(tmp_path)), STANDARD)
    assert (found.evaluation, found.served_model) == ("gold-2026-11-30", "small-2026-10")
    assert found.instructions == {"en-1", "de-1"}
    assert found.levels == {AccessLevel.PUBLIC, AccessLevel.TEAM}
    assert found.is_review


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"passed": False}, "did not pass gold-2026-11-30"),
        ({"fingerprint": "other"}, "the model, its endpoint or its parameters changed"),
        ({"schema_version": "other"}, "the answer's schema changed"),
        ({"validation_version": "1:0.6"}, "the rules of validation changed"),
        ({"levels": ["secret"]}, "not valid: levels"),
        ({"levels": []}, "not valid: levels"),
        ({"evaluated_at": "2026-11-30T08:00:00"}, "not valid: evaluated_at"),
        ({"format": 2}, "not valid: format"),
        ({"extra": 1}, "not valid: extra"),
    ],
)
def test_a_report_that_does_not_hold_says_why(
    tmp_path: Path, changed: dict[str, object], complaint: str
) -> None:
    path = written(tmp_path, **changed)
    with pytest.raises(Unqualified, match=complaint):
        qualified(read(path), STANDARD)


def test_a_report_that_is_not_there_or_no_json_is_no_qualification(tmp_path: Path) -> None:
    with pytest.raises(Unqualified, match="cannot be read: No such file"):
        read(tmp_path / "none.json")
    path = tmp_path / "report.json"
    path.write_text("{")
    with pytest.raises(Unqualified, match="not valid: JSON"):
        read(path)


def test_a_fingerprint_changes_with_everything_that_changes_answers() -> None:
    options = ENDPOINT.options
    changed = [
        replace(ENDPOINT, model="other"),
        replace(ENDPOINT, base_url="https://other.example/v1"),
        replace(ENDPOINT, has_schema=True),
        replace(ENDPOINT, options=replace(options, limit_parameter="max_completion_tokens")),
        replace(ENDPOINT, options=replace(options, output_tokens=900)),
        replace(ENDPOINT, options=replace(options, temperature=None)),
        replace(ENDPOINT, options=replace(options, reasoning_effort="low")),
    ]
    assert len({PRINT, *map(fingerprint, changed)}) == 8


def test_a_fingerprint_stays_with_everything_else() -> None:
    same = replace(
        ENDPOINT,
        id="b",
        base_url="https://MODELS.example:8443/v1/",
        key="k",
        attempt_seconds=9,
        options=replace(ENDPOINT.options, temperature=0),
    )
    assert fingerprint(same) == PRINT
    assert host("https://key@Models.example/v1") == "models.example"
