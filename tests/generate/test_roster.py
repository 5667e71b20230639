import json
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from capacity import Limits
from providers.endpoint import ChatOptions, Endpoint, Price
from services.generate.listing import Listed
from services.generate.qualification import SCHEMA_VERSION, fingerprint
from services.generate.roster import Admission

LIMITS = Limits(requests_per_minute=60, tokens_per_minute=60_000, in_flight=4, max_reservation=9)
FIRST = Endpoint(
    id="primary",
    base_url="https://models.example/v1",
    model="large",
    pool="answers",
    limits=LIMITS,
    options=ChatOptions(output_tokens=100),
    attempt_seconds=30,
)
BACKUP = replace(FIRST, id="backup", model="small")


def report(folder: Path, endpoint: Endpoint, **changed: object) -> Path:
    written = {
        "format": 1,
        "report_id": "gold-1",
        "fingerprint": fingerprint(endpoint),
        "model": endpoint.model,
        "host": "models.example",
        "served_model": "small-2026",
        "instructions_versions": ["en-1"],
        "schema_version": SCHEMA_VERSION,
        "validation_version": "4:0.5",
        "levels": ["public"],
        "mode": "full",
        "passed": True,
        "evaluated_at": "2026-11-30T08:00:00Z",
    }
    path = folder / f"{endpoint.id}.json"
    path.write_text(json.dumps({**written, **changed}))
    return path


def test_the_first_is_vouched_for_and_the_others_need_a_report_that_holds(tmp_path: Path) -> None:
    listed = Listed(BACKUP, report(tmp_path, BACKUP))
    first, backup = Admission(floor=0.5).roster(FIRST, None, [listed])
    assert (first.endpoint, first.qualification) == (FIRST, None)
    assert backup.endpoint == BACKUP
    assert backup.qualification is not None
    assert backup.qualification.evaluation == "gold-1"


def test_the_first_can_be_held_to_a_report_too(tmp_path: Path) -> None:
    path = report(tmp_path, FIRST)
    (first,) = Admission(floor=0.5).roster(FIRST, path, [])
    assert first.qualification is not None
    assert Admission(floor=0.6).roster(FIRST, path, []) == []


DISABLED = [
    ({"passed": False}, "did not pass gold-1"),
    ({"fingerprint": "another"}, "requalification is due: the model, its endpoint"),
    ({"schema_version": "another"}, "requalification is due: the answer's schema"),
    ({"validation_version": "1:0.4"}, "requalification is due: the rules of validation"),
    ({"mode": "some"}, "its report is not valid: mode"),
]


@pytest.mark.parametrize(("changed", "reason"), DISABLED)
def test_who_is_not_qualified_is_disabled_and_the_log_says_why_once(
    tmp_path: Path, changed: dict[str, object], reason: str
) -> None:
    listed = Listed(BACKUP, report(tmp_path, BACKUP, **changed))
    with capture_logs() as logs:
        (first,) = Admission(floor=0.5).roster(FIRST, None, [listed])
    assert first.endpoint is FIRST
    (told,) = logs
    assert (told["event"], told["candidate"]) == ("candidate_disabled", "backup")
    assert told["reason"].startswith(reason) or reason in told["reason"]


def test_without_a_report_nobody_is_qualified(tmp_path: Path) -> None:
    with capture_logs() as logs:
        roster = Admission(floor=0.5).roster(FIRST, None, [Listed(BACKUP, tmp_path / "none")])
    assert len(roster) == 1
    assert logs[0]["reason"] == "its report cannot be read: No such file or directory"


def test_where_cost_is_bounded_a_candidate_needs_a_price(tmp_path: Path) -> None:
    priced = replace(BACKUP, price=Price(0.4, 1.6))
    path = report(tmp_path, BACKUP)
    admission = Admission(floor=0.5, needs_price=True)
    roster = admission.roster(FIRST, None, [Listed(BACKUP, path), Listed(priced, path)])
    assert [admitted.endpoint for admitted in roster] == [FIRST, priced]
