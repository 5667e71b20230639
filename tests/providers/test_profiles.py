"""The profiles that speak to a provider: complete but for what is their user's to set."""

from collections.abc import Mapping

import pytest

from chassis.settings import ProcessSettings, load
from gateway.settings import GatewaySettings
from local import profile
from services.assemble.settings import AssembleSettings
from services.generate.settings import GenerateSettings
from services.ingest.settings import IngestSettings
from services.retrieve.settings import RetrieveSettings

KEYS = {"SLUICE_ANSWER_API_KEY": "sk-1", "SLUICE_EMBEDDING_API_KEY": "sk-2"}
RESOURCE = "https://ours.openai.azure.com/openai/v1/"
USERS: Mapping[str, Mapping[str, str]] = {
    "ollama": {},
    "openai": KEYS,
    "azure": {
        **KEYS,
        "SLUICE_ANSWER_BASE_URL": RESOURCE,
        "SLUICE_EMBEDDING_BASE_URL": RESOURCE,
        "SLUICE_ANSWER_MODEL": "our-deployment",
    },
}


@pytest.fixture(params=USERS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A profile that is in force, with all that its user has to set."""
    chosen: str = request.param
    for variable, value in profile.load(chosen, USERS[chosen]).items():
        monkeypatch.setenv(variable, value)
    return chosen


def test_the_endpoint_is_asked_as_its_vendor_wants(name: str) -> None:
    endpoint = load(GenerateSettings).answer_endpoint()
    if name == "ollama":
        assert (endpoint.attempt_seconds, endpoint.options.limit_parameter) == (180, "max_tokens")
    else:
        assert endpoint.key == "sk-1"
        assert endpoint.options.limit_parameter == "max_completion_tokens"
        assert endpoint.attempt_seconds == 120
    assert endpoint.has_schema
    assert endpoint.options.temperature == 0
    assert "sk-1" not in repr(endpoint)


def test_thresholds_and_totals_are_those_of_the_vendors_model(name: str) -> None:
    retrieve, gateway = load(RetrieveSettings), load(GatewaySettings)
    expected = (0.5, 600) if name == "ollama" else (0.3, 300)
    assert (retrieve.score_threshold_cosine, gateway.answer_deadline) == expected
    assert load(GenerateSettings).generate_seconds == gateway.answer_deadline


def test_what_is_assembled_fits_one_call(name: str) -> None:
    generate, assemble = load(GenerateSettings), load(AssembleSettings)
    assert assemble.context_limit <= generate.answer_max_reservation
    assert generate.answer_output_tokens <= max(1_000, assemble.output_reserve), name


def test_whoever_has_a_seat_has_places_at_both_endpoints(name: str) -> None:
    gateway = load(GatewaySettings)
    for limits in (gateway.embedding_limits(), gateway.answer_limits()):
        places, *_ = limits.shared(gateway.local_share).numbers()
        assert gateway.max_in_flight <= places, name
    places, of_batch, *_ = gateway.embedding_limits().shared(gateway.local_share).numbers()
    assert gateway.max_in_flight <= places - of_batch


def test_what_ingest_embeds_at_once_is_within_the_allowance(name: str) -> None:
    settings = load(IngestSettings)
    assert settings.embedding_batch_tokens <= settings.embedding_max_reservation, name


MISSING: list[tuple[str, type[ProcessSettings], str]] = [
    ("openai", GenerateSettings, "SLUICE_ANSWER_API_KEY"),
    ("openai", RetrieveSettings, "SLUICE_EMBEDDING_API_KEY"),
    ("openai", IngestSettings, "SLUICE_EMBEDDING_API_KEY"),
    ("azure", GenerateSettings, "SLUICE_ANSWER_API_KEY"),
    ("azure", GenerateSettings, "SLUICE_ANSWER_BASE_URL"),
    ("azure", GenerateSettings, "SLUICE_ANSWER_MODEL"),
    ("azure", RetrieveSettings, "SLUICE_EMBEDDING_BASE_URL"),
    ("azure", IngestSettings, "SLUICE_EMBEDDING_API_KEY"),
]


@pytest.mark.parametrize(("profile_name", "kind", "variable"), MISSING)
def test_what_is_missing_stops_the_start_by_name(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    profile_name: str,
    kind: type[ProcessSettings],
    variable: str,
) -> None:
    given = {key: text for key, text in USERS[profile_name].items() if key != variable}
    for key, text in profile.load(profile_name, given).items():
        monkeypatch.setenv(key, text)
    with pytest.raises(SystemExit):
        load(kind)
    complaint = capsys.readouterr().err
    assert complaint.startswith(variable)
    assert "is missing" in complaint
    assert "sk-" not in complaint


@pytest.mark.parametrize("pool", ["ANSWER", "EMBEDDING"])
@pytest.mark.parametrize("chosen", ["entra", "none"])
def test_who_proves_itself_otherwise_needs_no_key(
    monkeypatch: pytest.MonkeyPatch, pool: str, chosen: str
) -> None:
    kind = GenerateSettings if pool == "ANSWER" else RetrieveSettings
    given = {**USERS["azure"], f"SLUICE_{pool}_CREDENTIALS": chosen}
    del given[f"SLUICE_{pool}_API_KEY"]
    for key, text in profile.load("azure", given).items():
        monkeypatch.setenv(key, text)
    settings = load(kind)
    assert getattr(settings, f"{pool.lower()}_credentials") == chosen


def test_no_profile_holds_a_secret() -> None:
    for name in profile.names():
        told = profile.load(name, {})
        assert [key for key, text in told.items() if key.endswith("_KEY") and text] == [], name
