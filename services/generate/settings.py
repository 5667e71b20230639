"""Settings of the generate process."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from chassis.settings import PREFIX, StageSettings
from providers.settings import AnswerSettings
from services.generate import listing
from services.generate.budget import Budget
from services.generate.extract import Calibration
from services.generate.guard import Guard
from services.generate.listing import Listed, Shares

SHORTEST_KEY = 16  # characters
DEVELOPMENT_KEY = "development-cache-key"


class PolicySettings(AnswerSettings):
    """How often, for how much and by whom a question is answered, and what may stand in."""

    # Of 402 labelled statements in seven languages, over passages of our own, 278 chose it: 1 of
    # 110 that are carried fell below, and 1 of 168 others did not. The other 124 confirmed it: 0 of
    # 47 and 2 of 77.
    answer_support_floor: float = Field(
        0.5,
        ge=0,
        le=1,
        description="support below which a model's sentence makes its answer need a review",
        examples=["0.5"],
    )
    answer_release: Literal["sentence", "token"] = Field(
        "sentence",
        description="what a stream shows before the verdict: checked sentences, or every token",
        examples=["token"],
    )
    answer_max_attempts: int = Field(
        3, ge=1, le=20, description="calls to models that one question may make", examples=["3"]
    )
    answer_max_tokens_total: int | None = Field(
        None,
        gt=0,
        description="tokens, read and written, that one question may use; unbounded when empty",
        examples=["60000"],
    )
    answer_max_cost: float | None = Field(
        None,
        gt=0,
        description="most that one question may cost, in the currency of the prices; unbounded"
        " when empty",
        examples=["0.05"],
    )
    answer_invalid_output: Literal["fail", "repair", "switch"] = Field(
        "repair",
        description="after a reply that breaks the contract: give up, ask once more, or ask the"
        " next candidate",
        examples=["repair"],
    )
    answer_extractive_fallback: bool = Field(
        True,
        description="where no model can answer, sentences of the sources may, labelled so",
        examples=["true"],
    )
    answer_candidates: Path | None = Field(
        None,
        description="YAML file of the candidates that may answer where the first one cannot",
        examples=["/etc/sluice/candidates.yaml"],
    )
    answer_qualification: Path | None = Field(
        None,
        description="report that the first candidate must hold to; without one an operator"
        " vouches for it",
        examples=["/etc/sluice/primary.json"],
    )
    answer_cache_seconds: float = Field(
        3_600,
        ge=0,
        le=31_536_000,
        description="how long an answer is given again to the same question and evidence; 0"
        " keeps none",
        examples=["3600"],
    )
    answer_max_stale: float = Field(
        86_400,
        ge=0,
        le=31_536_000,
        description="seconds for which such an answer may stand in, with its age, while no model"
        " answers",
        examples=["86400"],
    )
    answer_cache_key: SecretStr = Field(
        SecretStr(""),
        description="secret that the cache's keys are made with, the same for all replicas",
        examples=["32 random characters or more"],
    )
    answer_replay_cached_streams: bool = Field(
        False, description="streams are answered from the cache too", examples=["true"]
    )

    @property
    def budget(self) -> Budget:
        return Budget(self.answer_max_attempts, self.answer_max_tokens_total, self.answer_max_cost)

    def listed(self) -> list[Listed]:
        """The candidates besides the first. Raises ValueError; never for loaded settings."""
        if self.answer_candidates is None:
            return []
        shares = Shares(self.interactive_reserve, self.local_share)
        return listing.read(self.answer_candidates, self.answer_limits(), shares)

    @field_validator(
        "answer_max_tokens_total",
        "answer_max_cost",
        "answer_candidates",
        "answer_qualification",
        mode="before",
    )
    @classmethod
    def _nothing_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @model_validator(mode="after")
    def _policy_holds(self) -> "PolicySettings":
        if self.answer_max_stale < self.answer_cache_seconds:
            raise ValueError(
                f"{PREFIX}ANSWER_MAX_STALE: must not lie below {PREFIX}ANSWER_CACHE_SECONDS;"
                f" for example {PREFIX}ANSWER_MAX_STALE=86400"
            )
        if self.answer_max_cost is not None and self.answer_endpoint().price is None:
            raise ValueError(
                f"{PREFIX}ANSWER_MAX_COST: needs {PREFIX}ANSWER_INPUT_PRICE and"
                f" {PREFIX}ANSWER_OUTPUT_PRICE; for example {PREFIX}ANSWER_INPUT_PRICE=0.40"
            )
        try:
            self.listed()
        except ValueError as error:
            raise ValueError(
                f"{PREFIX}ANSWER_CANDIDATES: {error}; for example"
                f" {PREFIX}ANSWER_CANDIDATES=/etc/sluice/candidates.yaml"
            ) from error
        return self


class GenerateSettings(PolicySettings, StageSettings):
    port: int = Field(50054, gt=0, lt=65_536, description="gRPC port", examples=["50054"])
    generate_seconds: float = Field(
        600, gt=0, le=600, description="most seconds that one call may take", examples=["120"]
    )
    # Calibrated for multilingual-e5-small on the gold questions of examples/, 43 more of our own
    # on that corpus and on 119 public runbooks, and 98 that neither of them answers, most of them
    # one word away from what is there: 20 of the 25 gold questions in the documents' language are
    # answered, all from a right document, none of those without an answer, and 13 of the 98.
    extractive_score_low: float = Field(
        0.80, ge=-1, le=1, description="cosine that says nothing for a source", examples=["0.80"]
    )
    extractive_score_high: float = Field(
        0.90, ge=-1, le=1, description="cosine that says all for a source", examples=["0.90"]
    )
    extractive_least_support: float = Field(
        0.52,
        gt=0,
        le=1,
        description="evidence, 0 to 1, below which nothing is quoted",
        examples=["0.6"],
    )
    generate_max_messages: int = Field(
        16, gt=0, description="messages that one call may carry", examples=["16"]
    )
    generate_max_sources: int = Field(
        200, gt=0, description="sources that one call may carry", examples=["200"]
    )
    generate_max_bytes: int = Field(
        1_000_000,
        gt=0,
        description="bytes of all messages, and of all sources, that one call may carry",
        examples=["1000000"],
    )

    @property
    def calibration(self) -> Calibration:
        return Calibration(
            self.extractive_score_low, self.extractive_score_high, self.extractive_least_support
        )

    @property
    def guard(self) -> Guard:
        return Guard(self.generate_max_messages, self.generate_max_sources, self.generate_max_bytes)

    @property
    def cache_secret(self) -> bytes:
        return (self.answer_cache_key.get_secret_value() or DEVELOPMENT_KEY).encode()

    @model_validator(mode="after")
    def _scores_have_a_width(self) -> "GenerateSettings":
        if self.extractive_score_low >= self.extractive_score_high:
            raise ValueError(
                f"{PREFIX}EXTRACTIVE_SCORE_LOW: must lie below {PREFIX}EXTRACTIVE_SCORE_HIGH;"
                f" for example {PREFIX}EXTRACTIVE_SCORE_LOW=0.80"
            )
        return self

    @model_validator(mode="after")
    def _production_needs_a_cache_key(self) -> "GenerateSettings":
        key = self.answer_cache_key.get_secret_value()
        is_used = self.answer_mode == "generated" and self.answer_cache_seconds > 0
        if key and len(key) < SHORTEST_KEY:
            raise ValueError(
                f"{PREFIX}ANSWER_CACHE_KEY: needs at least {SHORTEST_KEY} characters; for example"
                " the output of: openssl rand -hex 32"
            )
        if is_used and not key and self.env == "production":
            raise ValueError(
                f"{PREFIX}ANSWER_CACHE_KEY is missing: set it to a secret that all replicas share,"
                " for example the output of: openssl rand -hex 32, or set"
                f" {PREFIX}ANSWER_CACHE_SECONDS=0 to keep no answers"
            )
        return self
