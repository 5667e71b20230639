import pytest

from chassis.identity import AccessLevel
from chassis.settings import load
from services.ingest.settings import IngestSettings


def settings(monkeypatch: pytest.MonkeyPatch, **env: str) -> IngestSettings:
    for name, value in {"ENV": "development", **env}.items():
        monkeypatch.setenv(f"SLUICE_{name}", value)
    return load(IngestSettings)


def test_the_budget_is_what_suits_the_profile_unless_it_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settings(monkeypatch).budget == 256
    assert settings(monkeypatch, CHUNK_TOKENS="").budget == 256
    assert settings(monkeypatch, CHUNK_TOKENS="300").budget == 300
    assert settings(monkeypatch).access is AccessLevel.TEAM


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("CHUNK_TOKENS", "513", "SLUICE_CHUNK_TOKENS: 513 is above what multilingual-e5-small"),
        ("CHUNK_TOKENS", "10", "SLUICE_CHUNK_TOKENS: .* 128"),
        ("CHUNK_OVERLAP", "-1", "SLUICE_CHUNK_OVERLAP: "),
        ("CHUNK_OVERLAP", "9", "SLUICE_CHUNK_OVERLAP: "),
        ("OVERSIZED_BLOCKS", "cut", "SLUICE_OVERSIZED_BLOCKS: .*'reject'"),
        ("DEFAULT_ACCESS", "secret", "SLUICE_DEFAULT_ACCESS: .*'team'"),
        ("EMBEDDING_PROFILE", "e6", "SLUICE_EMBEDDING_PROFILE: .* there are multilingual-e5-small"),
        ("QDRANT_URL", "qdrant", "SLUICE_QDRANT_URL: .*SLUICE_QDRANT_URL=http://qdrant:6334"),
        ("EMBEDDING_BATCH_TOKENS", "40000", "SLUICE_EMBEDDING_BATCH_TOKENS: .* 40000 tokens"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_its_name_and_an_example(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: str,
    complaint: str,
) -> None:
    with pytest.raises(SystemExit) as stop:
        settings(monkeypatch, **{name: value})
    assert stop.value.code == 2
    said = capsys.readouterr().err
    with pytest.raises(AssertionError, match=complaint):
        raise AssertionError(said)
    assert "for example" in said
