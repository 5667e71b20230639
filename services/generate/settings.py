"""Settings of the generate process."""

from pydantic import Field, model_validator

from chassis.settings import PREFIX, StageSettings
from providers.settings import AnswerSettings
from services.generate.extract import Calibration
from services.generate.guard import Guard


class GenerateSettings(AnswerSettings, StageSettings):
    port: int = Field(50054, gt=0, lt=65_536, description="gRPC port", examples=["50054"])
    generate_seconds: float = Field(
        600, gt=0, le=600, description="most seconds that one call may take", examples=["120"]
    )
    answer_support_floor: float = Field(
        0.5,
        ge=0,
        le=1,
        description="support below which a model's sentence makes its answer need a review",
        examples=["0.5"],
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

    @model_validator(mode="after")
    def _scores_have_a_width(self) -> "GenerateSettings":
        if self.extractive_score_low >= self.extractive_score_high:
            raise ValueError(
                f"{PREFIX}EXTRACTIVE_SCORE_LOW: must lie below {PREFIX}EXTRACTIVE_SCORE_HIGH;"
                f" for example {PREFIX}EXTRACTIVE_SCORE_LOW=0.80"
            )
        return self
