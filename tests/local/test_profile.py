import pytest

from chassis.settings import PREFIX, ProcessSettings, load
from gateway.settings import GatewaySettings
from gateway.worker.settings import WorkerSettings
from local import profile
from local.failures import Refused
from local.llm.settings import LlmSettings
from local.models.settings import ModelsSettings
from services.assemble.settings import AssembleSettings
from services.generate.settings import GenerateSettings
from services.ingest.settings import IngestSettings
from services.retrieve.settings import RetrieveSettings

KINDS: list[type[ProcessSettings]] = [
    AssembleSettings,
    GatewaySettings,
    GenerateSettings,
    IngestSettings,
    LlmSettings,
    ModelsSettings,
    RetrieveSettings,
    WorkerSettings,
]

# What a profile leaves to its user; the tests of providers see each of them missed.
TO_BE_SET = {
    "openai": {"SLUICE_ANSWER_API_KEY": "sk-1", "SLUICE_EMBEDDING_API_KEY": "sk-1"},
    "azure": {
        "SLUICE_ANSWER_MODEL": "answers",
        "SLUICE_ANSWER_CREDENTIALS": "entra",
        "SLUICE_EMBEDDING_BASE_URL": "https://ours.openai.azure.com/openai/v1/",
        "SLUICE_EMBEDDING_API_KEY": "key",
    },
}


def test_comments_and_blank_lines_are_no_settings() -> None:
    text = "# why\n\nSLUICE_ENV=development\n  # also why\nSLUICE_ANSWER_BASE_URL=http://a/?b=c\n"
    assert profile.parse(text) == {
        "SLUICE_ENV": "development",
        "SLUICE_ANSWER_BASE_URL": "http://a/?b=c",
    }


@pytest.mark.parametrize("line", ["SLUICE_ENV", "PATH=/bin", "export SLUICE_ENV=development"])
def test_a_line_that_is_no_setting_is_named(line: str) -> None:
    with pytest.raises(Refused, match="line 2 of the profile is not SLUICE_NAME=value"):
        profile.parse(f"# first\n{line}\n")


def test_the_environment_wins_over_the_profile() -> None:
    told = profile.load("embedded", {"SLUICE_LOG_LEVEL": "debug", "PATH": "/bin"})
    assert told["SLUICE_LOG_LEVEL"] == "debug"
    assert told["SLUICE_ENV"] == "development"
    assert "PATH" not in told


def test_a_profile_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(Refused, match=r"no profile 'cloud'; there are: .*embedded"):
        profile.load("cloud", {})


@pytest.mark.parametrize("name", profile.names())
def test_a_profile_sets_only_what_some_process_reads_and_every_process_accepts_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where the provider and the jobs are: the supervisor's to say, or the user's.
    told = {
        "SLUICE_ANSWER_BASE_URL": "http://127.0.0.1:9/v1",
        "SLUICE_JOBS_REDIS_URL": "redis://127.0.0.1:9/0",
        **profile.load(name, {}),
    }
    told |= TO_BE_SET.get(name, {})
    known = {f"{PREFIX}{field.upper()}" for kind in KINDS for field in kind.model_fields}
    assert set(told) - known == set()
    for variable, value in told.items():
        monkeypatch.setenv(variable, value)
    assert {kind().env for kind in KINDS} == {"development"}


def test_whoever_has_a_seat_in_the_embedded_gateway_has_an_embedding_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in profile.load("embedded", {}).items():
        monkeypatch.setenv(name, value)
    gateway, models = load(GatewaySettings), load(ModelsSettings)
    places, of_batch, *_ = gateway.embedding_limits().shared(gateway.local_share).numbers()
    assert gateway.max_in_flight <= places - of_batch
    assert gateway.embedding_in_flight <= models.models_requests


def test_what_a_profile_does_not_set_is_as_in_the_embedded_one() -> None:
    told = profile.load("local-llm", {})
    assert told["SLUICE_ANSWER_MODE"] == "generated"
    assert (
        told.items()
        >= {
            name: value
            for name, value in profile.load("embedded", {}).items()
            if name not in profile.parse((profile.FOLDER / "local-llm.env").read_text())
        }.items()
    )


def test_whoever_has_a_seat_beside_the_small_model_has_a_slot_that_holds_question_and_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most_of_one = 3.3  # tokens that the model makes of one of ours, as measured in many languages
    template = 32  # what the engine writes around two messages
    monkeypatch.setenv("SLUICE_ANSWER_BASE_URL", "http://127.0.0.1:8091/v1")
    for name, value in profile.load("local-llm", {}).items():
        monkeypatch.setenv(name, value)
    gateway, generate, engine = load(GatewaySettings), load(GenerateSettings), load(LlmSettings)
    budget = load(AssembleSettings).budget
    places, *_ = gateway.answer_limits().shared(gateway.local_share).numbers()
    assert gateway.max_in_flight <= places <= engine.llm_slots
    assert generate.answer_output_tokens <= budget.output_reserve
    most = budget.allowance * most_of_one + generate.answer_output_tokens + template
    assert most <= engine.llm_window
    assert most <= gateway.answer_max_reservation
