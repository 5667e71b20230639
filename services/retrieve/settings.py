"""What the retrieve process is told."""

from pydantic import Field, field_validator

from chassis.settings import StageSettings
from corpus.settings import IndexSettings
from providers.settings import EmbeddingSettings
from services.retrieve.wire import LARGEST_TOP_K


class RetrieveSettings(StageSettings, IndexSettings, EmbeddingSettings):
    port: int = Field(50052, ge=1, le=65535, description="gRPC port", examples=["50052"])
    top_k: int = Field(
        8, ge=1, le=LARGEST_TOP_K, description="passages where none are asked for", examples=["8"]
    )
    score_threshold: float | None = Field(
        None,
        ge=-1,
        le=1,
        description="least cosine of a passage; every one passes when empty",
        examples=["0.3"],
    )

    @field_validator("score_threshold", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value
