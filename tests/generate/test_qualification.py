import json
from pathlib import Path

import pytest

from chassis.identity import AccessLevel
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

PARAMETERS = {
    "structured_output": True,
    "limit_parameter": "max_tokens",
    "output_tokens": 1_000,
    "temperature": 0,
    "reasoning_effort": None,
}
PRINT = fingerprint("small", "https://models.example:8443/v1", **PARAMETERS)  # type: ignore[arg-type] # each has its own type
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
    "validation_version": "1:0.5",
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


def test_a_fingerprint_changes_with_everything_but_the_way_the_endpoint_is_written() -> None:
    changed = [
        fingerprint("other", "https://models.example:8443/v1", **PARAMETERS),  # type: ignore[arg-type] # as above
        fingerprint("small", "https://other.example/v1", **PARAMETERS),  # type: ignore[arg-type] # as above
        *(
            fingerprint("small", "https://models.example:8443/v1", **{**PARAMETERS, **one})  # type: ignore[arg-type] # as above
            for one in (
                {"structured_output": False},
                {"limit_parameter": "max_completion_tokens"},
                {"output_tokens": 900},
                {"temperature": None},
                {"reasoning_effort": "low"},
            )
        ),
    ]
    assert len({PRINT, *changed}) == 8
    assert fingerprint("small", "https://MODELS.example:8443/v1/", **PARAMETERS) == PRINT  # type: ignore[arg-type] # as above
    assert host("https://key@Models.example/v1") == "models.example"
