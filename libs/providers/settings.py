"""Settings of the two pools, for processes to inherit from.

Who calls a provider needs all of them; who only looks at a pool needs its limits.
"""

from collections.abc import Callable
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from capacity import InvalidLimit, Limits, SharedBucket
from chassis.settings import PREFIX
from providers import credentials
from providers.credentials import Tokens
from providers.endpoint import ChatOptions, Credentials, Effort, Endpoint, LimitParameter, Price

HTTP = r"^https?://(?:[^\s/:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/\S*)?$"


class CapacitySettings(BaseSettings):
    """Where the shared allowance is kept, and how it is divided."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    redis_url: str = Field(
        "redis://127.0.0.1:6379/0",
        description="Redis that holds the provider's allowance for all processes",
        examples=["redis://redis:6379/0"],
    )
    interactive_reserve: float = Field(
        0.2,
        ge=0,
        le=1,
        description="share of each allowance that batch work cannot take",
        examples=["0.2"],
    )
    local_share: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="share of each allowance set aside for the time without Redis; 0 refuses then",
        examples=["0.05"],
    )
    max_processes: int = Field(
        8,
        gt=0,
        description="most processes that draw on one allowance; they divide the local share",
        examples=["8"],
    )
    cooldown_ramp_seconds: float = Field(
        10,
        gt=0,
        le=600,
        description="how long an allowance takes to flow in full again after a throttle",
        examples=["10"],
    )

    capacity_decision_seconds: float = Field(
        0.05,
        gt=0,
        le=5,
        description="longest that one decision may take before Redis counts as lost",
        examples=["0.05"],
    )
    interactive_wait_seconds: float = Field(
        2,
        ge=0,
        le=60,
        description="longest that a question waits for its turn at a provider; 0 refuses at once",
        examples=["2"],
    )

    def bucket(self, pool: str, limits: Limits) -> SharedBucket:
        """This process's share in the pool of that name."""
        return SharedBucket.connect(
            self.redis_url,
            pool,
            limits,
            decision_timeout=self.capacity_decision_seconds,
            local_share=self.local_share,
            max_processes=self.max_processes,
            ramp_seconds=self.cooldown_ramp_seconds,
        )


class EmbeddingLimits(CapacitySettings):
    """What the provider of the embedding model allows."""

    embedding_requests_per_minute: float = Field(
        6_000, gt=0, description="embedding calls allowed in a minute", examples=["3000"]
    )
    embedding_tokens_per_minute: float = Field(
        2_000_000, gt=0, description="embedding tokens allowed in a minute", examples=["1000000"]
    )
    embedding_in_flight: int = Field(
        8, gt=0, description="embedding calls allowed at once", examples=["8"]
    )
    embedding_max_reservation: int = Field(
        32_000, gt=0, description="most tokens that one embedding call asks for", examples=["32000"]
    )

    def embedding_limits(self) -> Limits:
        """Raises InvalidLimit; never for settings that were loaded."""
        return Limits(
            requests_per_minute=self.embedding_requests_per_minute,
            tokens_per_minute=self.embedding_tokens_per_minute,
            in_flight=self.embedding_in_flight,
            max_reservation=self.embedding_max_reservation,
            interactive_reserve=self.interactive_reserve,
        )

    @model_validator(mode="after")
    def _embedding_limits_hold(self) -> "EmbeddingLimits":
        _check(self.embedding_limits, self.local_share, "EMBEDDING")
        return self


class EmbeddingSettings(EmbeddingLimits):
    """The embedding model and what its provider allows."""

    embedding_base_url: str = Field(
        "http://127.0.0.1:8090/v1",
        pattern=HTTP,
        description="OpenAI-compatible endpoint for embeddings",
        examples=["http://127.0.0.1:8090/v1"],
    )
    embedding_api_key: SecretStr = Field(
        SecretStr(""),
        description="key of the embeddings endpoint; local ones need none",
        examples=["sk-..."],
    )
    embedding_credentials: Credentials = Field(
        "key",
        description="what calls prove themselves with; entra is this process's own Azure identity",
        examples=["entra"],
    )
    embedding_model: str = Field(
        "",
        description="model name for the endpoint where it is not the embedding profile's",
        examples=["my-embedding-deployment"],
    )
    embedding_attempt_seconds: float = Field(
        30, gt=0, le=600, description="longest that one embedding call may take", examples=["30"]
    )

    @field_validator("embedding_base_url", mode="before")
    @classmethod
    def _embedding_endpoint_is_there(cls, value: object) -> object:
        if value == "":
            raise ValueError("is missing: set it to the endpoint's address")
        return value

    def embedding_key(self) -> str | Tokens:
        """What the client is made with. Raises Misconfigured where `entra` is not installed."""
        return credentials.of(self.embedding_credentials, self.embedding_api_key.get_secret_value())

    @model_validator(mode="after")
    def _embedding_key_is_there(self) -> "EmbeddingSettings":
        _check_key(
            self.embedding_base_url, self.embedding_credentials, self.embedding_api_key, "EMBEDDING"
        )
        return self


class AnswerLimits(CapacitySettings):
    """What the provider of the model that answers allows."""

    answer_requests_per_minute: float = Field(
        500, gt=0, description="calls to the model allowed in a minute", examples=["500"]
    )
    answer_tokens_per_minute: float = Field(
        200_000,
        gt=0,
        description="tokens, read and written, allowed in a minute",
        examples=["200000"],
    )
    answer_in_flight: int = Field(
        16, gt=0, description="calls to the model allowed at once", examples=["16"]
    )
    answer_max_reservation: int = Field(
        20_000,
        gt=0,
        description="most tokens that one call to the model asks for, read and written",
        examples=["20000"],
    )

    def answer_limits(self) -> Limits:
        """Raises InvalidLimit; never for settings that were loaded."""
        return Limits(
            requests_per_minute=self.answer_requests_per_minute,
            tokens_per_minute=self.answer_tokens_per_minute,
            in_flight=self.answer_in_flight,
            max_reservation=self.answer_max_reservation,
            interactive_reserve=self.interactive_reserve,
        )

    @model_validator(mode="after")
    def _answer_limits_hold(self) -> "AnswerLimits":
        _check(self.answer_limits, self.local_share, "ANSWER")
        return self


class AnswerSettings(AnswerLimits):
    """How answers are made, and what the provider of the model allows."""

    answer_mode: Literal["extractive", "generated"] = Field(
        "extractive",
        description="extractive quotes the sources, generated asks a model",
        examples=["generated"],
    )
    answer_base_url: str = Field(
        "",
        pattern=f"^$|{HTTP}",
        description="OpenAI-compatible endpoint for answers",
        examples=["https://api.openai.com/v1"],
    )
    answer_api_key: SecretStr = Field(
        SecretStr(""),
        description="key of the answers endpoint; local ones need none",
        examples=["sk-..."],
    )
    answer_credentials: Credentials = Field(
        "key",
        description="what calls prove themselves with; entra is this process's own Azure identity",
        examples=["entra"],
    )
    answer_model: str = Field(
        "", description="model or deployment that writes answers", examples=["gpt-4.1-mini"]
    )
    answer_structured_output: bool = Field(
        False,
        description="the endpoint can be held to a JSON schema; else the prompt asks for it",
        examples=["true"],
    )
    answer_limit_parameter: LimitParameter = Field(
        "max_tokens",
        description="name of the output limit; reasoning models want max_completion_tokens",
        examples=["max_completion_tokens"],
    )
    answer_temperature: float | None = Field(
        0, ge=0, le=2, description="temperature; none is sent when empty", examples=["0"]
    )
    answer_reasoning_effort: Effort | None = Field(
        None, description="effort of a reasoning model; not sent when empty", examples=["low"]
    )
    answer_output_tokens: int = Field(
        1_000, gt=0, le=100_000, description="most tokens of one answer", examples=["1000"]
    )
    answer_attempt_seconds: float = Field(
        120,
        gt=0,
        le=600,
        description="longest that one call to the model may take",
        examples=["120"],
    )

    answer_input_price: float | None = Field(
        None,
        ge=0,
        description="price of a million tokens read, in the currency of budgets; unknown if empty",
        examples=["0.40"],
    )
    answer_output_price: float | None = Field(
        None,
        ge=0,
        description="price of a million tokens written; unknown when empty",
        examples=["1.60"],
    )

    def answer_endpoint(self) -> Endpoint:
        """The model that answers first. Raises InvalidLimit; never for loaded settings."""
        return Endpoint(
            id="primary",
            base_url=self.answer_base_url,
            model=self.answer_model,
            pool="answers",
            limits=self.answer_limits(),
            options=ChatOptions(
                output_tokens=self.answer_output_tokens,
                limit_parameter=self.answer_limit_parameter,
                temperature=self.answer_temperature,
                reasoning_effort=self.answer_reasoning_effort,
            ),
            attempt_seconds=self.answer_attempt_seconds,
            credentials=self.answer_credentials,
            key=self.answer_api_key.get_secret_value(),
            has_schema=self.answer_structured_output,
            price=self._answer_price(),
        )

    def _answer_price(self) -> Price | None:
        if self.answer_input_price is None or self.answer_output_price is None:
            return None
        return Price(self.answer_input_price, self.answer_output_price)

    @field_validator(
        "answer_temperature",
        "answer_reasoning_effort",
        "answer_input_price",
        "answer_output_price",
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @model_validator(mode="after")
    def _generated_needs_a_model(self) -> "AnswerSettings":
        if self.answer_mode != "generated":
            return self
        for name, example in (("base_url", "https://api.openai.com/v1"), ("model", "gpt-4.1-mini")):
            if not getattr(self, f"answer_{name}"):
                variable = f"{PREFIX}ANSWER_{name.upper()}"
                raise ValueError(
                    f"{variable} is missing: generated answers need it; for example"
                    f" {variable}={example}"
                )
        _check_key(self.answer_base_url, self.answer_credentials, self.answer_api_key, "ANSWER")
        return self


def _check(limits: Callable[[], Limits], local_share: float, pool: str) -> None:
    """What is left beside the local share must hold too."""
    try:
        limits().shared(local_share)
    except InvalidLimit as error:
        shared = error.setting in {"interactive_reserve", "local_share"}
        variable = f"{PREFIX}{'' if shared else f'{pool}_'}{error.setting.upper()}"
        raise ValueError(f"{variable}: {error.complaint}") from error


def _check_key(url: str, chosen: Credentials, key: SecretStr, pool: str) -> None:
    """Whoever is reached by https asks who calls."""
    if chosen == "key" and url.startswith("https://") and not key.get_secret_value():
        raise ValueError(
            f"{PREFIX}{pool}_API_KEY is missing: set it to the endpoint's key, or set"
            f" {PREFIX}{pool}_CREDENTIALS=entra for an Azure identity, or to none"
        )
