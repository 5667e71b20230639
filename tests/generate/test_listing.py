from pathlib import Path

import pytest

from capacity import Limits
from services.generate.listing import Shares, read

FIRST = Limits(
    requests_per_minute=500, tokens_per_minute=200_000, in_flight=16, max_reservation=20_000
)
SHARES = Shares(interactive_reserve=0.2, local_share=0.05)
POOL = """
pools:
  backup: {requests_per_minute: 100, tokens_per_minute: 60000, in_flight: 4, max_reservation: 9000}
"""
CANDIDATE = """
  - id: small
    pool: backup
    base_url: https://models.example/v1
    model: small-model
    qualification: reports/small.json
"""
LEAST = f"{POOL}candidates:{CANDIDATE}"


def written(folder: Path, text: str) -> Path:
    path = folder / "candidates.yaml"
    path.write_text(text)
    return path


def test_candidates_are_read_in_order_with_what_is_usual_for_the_rest(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("very-secret\n")
    more = """
  - id: large
    pool: answers
    base_url: http://127.0.0.1:8000/v1
    model: large-model
    qualification: large.json
    key_file: key
    structured_output: true
    limit_parameter: max_completion_tokens
    temperature: null
    reasoning_effort: low
    output_tokens: 2000
    attempt_seconds: 60
    input_price: 0.4
    output_price: 1.6
"""
    small, large = read(written(tmp_path, LEAST + more), FIRST, SHARES)
    assert (small.endpoint.id, small.endpoint.pool) == ("small", "backup")
    assert small.endpoint.limits.requests_per_minute == 100
    assert small.endpoint.limits.interactive_reserve == 0.2
    assert (small.endpoint.key, small.endpoint.price) == ("", None)
    assert small.endpoint.options.temperature == 0
    assert small.report == tmp_path / "reports" / "small.json"
    assert large.endpoint.limits is FIRST
    assert (large.endpoint.key, large.endpoint.has_schema) == ("very-secret", True)
    assert large.endpoint.options.reasoning_effort == "low"
    assert large.endpoint.price is not None
    assert large.endpoint.price.of(1_000_000, 1_000_000) == 2.0
    assert "very-secret" not in repr(large)


WRONG = [
    ("candidates: [", "no YAML"),
    ("- just\n- a list", "the file: Input should be"),
    (LEAST.replace("model: small-model", ""), r"candidates.0.model: Field required"),
    (LEAST + "    secret: 1\n", r"candidates.0.secret: Extra inputs are not permitted"),
    (LEAST.replace("pool: backup", "pool: nobody"), "small: there is no pool nobody"),
    (LEAST + CANDIDATE, "ids must differ"),
    (LEAST.replace("id: small", "id: primary"), "ids must differ"),
    (LEAST.replace("  backup:", "  answers:"), "pools.answers: this name is the suite's own"),
    (LEAST.replace("in_flight: 4", "in_flight: 0"), "pools.backup.in_flight"),
    (
        LEAST.replace("max_reservation: 9000", "max_reservation: 90000"),
        "pools.backup.tokens_per_minute: ",
    ),
    (LEAST + "    key_file: none\n", "small.key_file: No such file"),
]


@pytest.mark.parametrize(("text", "complaint"), WRONG)
def test_what_is_wrong_is_told_by_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=complaint):
        read(path, FIRST, SHARES)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read .*: No such file"):
        read(tmp_path / "none.yaml", FIRST, SHARES)
