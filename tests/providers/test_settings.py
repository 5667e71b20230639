import pytest

from chassis.settings import StageSettings, load
from providers.settings import AnswerSettings, EmbeddingSettings


class Embedding(EmbeddingSettings, StageSettings):
    pass


class Answers(AnswerSettings, StageSettings):
    pass


@pytest.fixture(autouse=True)
def _development(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ENV", "development")


def test_defaults_serve_one_machine() -> None:
    settings = load(Embedding)
    assert settings.embedding_base_url == "http://127.0.0.1:8090/v1"
    assert settings.embedding_limits().in_flight == settings.embedding_in_flight
    assert load(Answers).answer_mode == "extractive"


def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ANSWER_API_KEY", "sk-secret")
    settings = load(Answers)
    assert "sk-secret" not in repr(settings)
    assert settings.answer_api_key.get_secret_value() == "sk-secret"


@pytest.mark.parametrize("missing", ["SLUICE_ANSWER_BASE_URL", "SLUICE_ANSWER_MODEL"])
def test_generated_answers_need_an_endpoint_and_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    given = {
        "SLUICE_ANSWER_MODE": "generated",
        "SLUICE_ANSWER_BASE_URL": "http://127.0.0.1:1/v1",
        "SLUICE_ANSWER_MODEL": "small",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert load(Answers).answer_model == "small"
    monkeypatch.delenv(missing)
    with pytest.raises(SystemExit):
        load(Answers)
    assert missing in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLUICE_EMBEDDING_BASE_URL", "127.0.0.1:8090"),
        ("SLUICE_EMBEDDING_BASE_URL", "http://127.0.0.1:port/v1"),
        ("SLUICE_EMBEDDING_REQUESTS_PER_MINUTE", "0"),
        ("SLUICE_EMBEDDING_REQUESTS_PER_MINUTE", "0.5"),
        ("SLUICE_EMBEDDING_TOKENS_PER_MINUTE", "nan"),
        ("SLUICE_EMBEDDING_TOKENS_PER_MINUTE", "100"),
        ("SLUICE_EMBEDDING_IN_FLIGHT", "-1"),
        ("SLUICE_INTERACTIVE_RESERVE", "1.5"),
        ("SLUICE_LOCAL_SHARE", "-0.1"),
        ("SLUICE_LOCAL_SHARE", "1"),
        ("SLUICE_LOCAL_SHARE", "nan"),
        ("SLUICE_MAX_PROCESSES", "0"),
        ("SLUICE_COOLDOWN_RAMP_SECONDS", "0"),
    ],
)
def test_limits_that_cannot_hold_stop_the_start_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        load(Embedding)
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"{name}: ")
    assert complaint.count("\n") == 1


def test_a_limit_that_does_not_hold_beside_the_local_share_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_EMBEDDING_TOKENS_PER_MINUTE", "43000")
    assert load(Embedding).embedding_limits().tokens_per_minute == 43_000
    monkeypatch.setenv("SLUICE_LOCAL_SHARE", "0.1")
    with pytest.raises(SystemExit):
        load(Embedding)
    complaint = capsys.readouterr().err
    assert complaint.startswith("SLUICE_EMBEDDING_TOKENS_PER_MINUTE: ")
    assert "beside a local share of 0.1" in complaint


def test_an_empty_temperature_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ANSWER_TEMPERATURE", "")
    monkeypatch.setenv("SLUICE_ANSWER_REASONING_EFFORT", "")
    settings = load(Answers)
    assert settings.answer_temperature is None
    assert settings.answer_reasoning_effort is None
