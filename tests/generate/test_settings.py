from pathlib import Path

import pytest

from chassis.settings import load
from services.generate.budget import Budget
from services.generate.settings import GenerateSettings

GENERATED = {
    "SLUICE_ANSWER_MODE": "generated",
    "SLUICE_ANSWER_BASE_URL": "http://127.0.0.1:8000/v1",
    "SLUICE_ANSWER_MODEL": "model-a",
}


@pytest.fixture(autouse=True)
def _development(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ENV", "development")


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    """What is complained of at the start."""
    with pytest.raises(SystemExit):
        load(GenerateSettings)
    return capsys.readouterr().err


def test_the_defaults_quote_with_the_bundled_models_calibration() -> None:
    settings = load(GenerateSettings)
    assert (settings.port, settings.answer_mode) == (50054, "extractive")
    assert settings.calibration.score_low < settings.calibration.score_high
    assert settings.guard.content_bytes == settings.generate_max_bytes
    assert settings.budget == Budget(attempts=3)
    assert settings.listed() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLUICE_ANSWER_MODE", "both"),
        ("SLUICE_EXTRACTIVE_SCORE_LOW", "0.9"),
        ("SLUICE_EXTRACTIVE_LEAST_SUPPORT", "0"),
        ("SLUICE_ANSWER_SUPPORT_FLOOR", "1.5"),
        ("SLUICE_ANSWER_RELEASE", "word"),
        ("SLUICE_ANSWER_MAX_ATTEMPTS", "0"),
        ("SLUICE_ANSWER_MAX_TOKENS_TOTAL", "0"),
        ("SLUICE_ANSWER_MAX_COST", "-1"),
        ("SLUICE_ANSWER_MAX_COST", "0.05"),
        ("SLUICE_ANSWER_INVALID_OUTPUT", "retry"),
        ("SLUICE_ANSWER_CACHE_SECONDS", "-1"),
        ("SLUICE_ANSWER_MAX_STALE", "10"),
        ("SLUICE_ANSWER_CACHE_KEY", "short"),
        ("SLUICE_ANSWER_CANDIDATES", "/nowhere/candidates.yaml"),
        ("SLUICE_GENERATE_MAX_MESSAGES", "0"),
        ("SLUICE_PORT", "70000"),
    ],
)
def test_a_wrong_setting_stops_the_start_by_name_with_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    complaint = refused(capsys)
    assert complaint.startswith(f"{name}: ")
    assert "for example" in complaint


def test_empty_means_no_bound_and_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_TOKENS_TOTAL", "MAX_COST", "CANDIDATES", "QUALIFICATION"):
        monkeypatch.setenv(f"SLUICE_ANSWER_{name}", "")
    settings = load(GenerateSettings)
    assert settings.budget == Budget(attempts=3)
    assert (settings.answer_candidates, settings.answer_qualification) == (None, None)


def test_a_bound_on_the_cost_is_held_with_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ANSWER_MAX_COST", "0.05")
    monkeypatch.setenv("SLUICE_ANSWER_INPUT_PRICE", "0.4")
    monkeypatch.setenv("SLUICE_ANSWER_OUTPUT_PRICE", "1.6")
    assert load(GenerateSettings).budget.cost == 0.05


def test_production_needs_a_secret_for_the_cache_or_no_cache(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert load(GenerateSettings).cache_secret == b"development-cache-key"
    for name, value in GENERATED.items():
        monkeypatch.setenv(name, value)
    assert load(GenerateSettings).cache_secret == b"development-cache-key"
    key = tmp_path / "internal.pub.pem"
    key.write_bytes(PUBLIC)
    monkeypatch.setenv("SLUICE_ENV", "production")
    monkeypatch.setenv("SLUICE_INTERNAL_VERIFY_KEY", str(key))
    assert refused(capsys).startswith("SLUICE_ANSWER_CACHE_KEY is missing: ")
    monkeypatch.setenv("SLUICE_ANSWER_CACHE_SECONDS", "0")
    assert load(GenerateSettings).answer_cache_seconds == 0
    monkeypatch.delenv("SLUICE_ANSWER_CACHE_SECONDS")
    monkeypatch.setenv("SLUICE_ANSWER_CACHE_KEY", "0123456789abcdef")
    settings = load(GenerateSettings)
    assert settings.cache_secret == b"0123456789abcdef"
    assert "0123456789abcdef" not in repr(settings)


PUBLIC = (
    b"-----BEGIN PUBLIC KEY-----\n"
    b"MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    b"-----END PUBLIC KEY-----\n"
)
