import pytest

from chassis.settings import load
from services.generate.settings import GenerateSettings


@pytest.fixture(autouse=True)
def _development(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ENV", "development")


def test_the_defaults_quote_with_the_bundled_models_calibration() -> None:
    settings = load(GenerateSettings)
    assert (settings.port, settings.answer_mode) == (50054, "extractive")
    assert settings.calibration.score_low < settings.calibration.score_high
    assert settings.guard.content_bytes == settings.generate_max_bytes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLUICE_ANSWER_MODE", "both"),
        ("SLUICE_EXTRACTIVE_SCORE_LOW", "0.9"),
        ("SLUICE_EXTRACTIVE_LEAST_SUPPORT", "0"),
        ("SLUICE_ANSWER_SUPPORT_FLOOR", "1.5"),
        ("SLUICE_GENERATE_MAX_MESSAGES", "0"),
        ("SLUICE_PORT", "70000"),
    ],
)
def test_a_wrong_setting_stops_the_start_by_name_with_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        load(GenerateSettings)
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"{name}: ")
    assert "for example" in complaint
