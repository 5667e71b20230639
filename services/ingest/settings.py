from typing import Literal

from pydantic import Field, field_validator, model_validator

from chassis.identity import AccessLevel
from chassis.settings import PREFIX, StageSettings
from corpus.settings import IndexSettings
from providers.settings import EmbeddingSettings

# Below this, title and heading can leave no room for a single character.
LEAST_TOKENS = 128


class IngestSettings(StageSettings, IndexSettings, EmbeddingSettings):
    port: int = Field(50051, ge=1, le=65535, description="gRPC port", examples=["50051"])
    chunk_tokens: int | None = Field(
        None,
        ge=LEAST_TOKENS,
        description="most tokens of a passage; what suits the embedding profile when empty",
        examples=["256"],
    )
    chunk_overlap: int = Field(
        1, ge=0, le=8, description="whole blocks repeated in the next passage", examples=["1"]
    )
    oversized_blocks: Literal["divide", "reject"] = Field(
        "divide",
        description="a block larger than a passage is divided, or its document is refused",
        examples=["reject"],
    )
    default_access: Literal["public", "team", "restricted"] = Field(
        "team",
        description="access level of documents that name none",
        examples=["team"],
    )
    reindex: bool = Field(
        False,
        description="fill the collection of this profile and chunking beside the one in use, for"
        " SwitchCollection to put in its place",
        examples=["true"],
    )
    document_bytes: int = Field(
        16 * 1024 * 1024, gt=0, description="largest document in bytes", examples=["16777216"]
    )
    mask_personal_data: bool = Field(
        default=False,
        description="e-mail addresses, phone, IBAN and card numbers are masked before indexing",
        examples=["true"],
    )
    ingest_seconds: float = Field(
        600, gt=0, le=3_600, description="longest that one call may take", examples=["600"]
    )
    embedding_batch_inputs: int = Field(
        64, gt=0, le=2_048, description="most passages in one embedding call", examples=["64"]
    )
    embedding_batch_tokens: int = Field(
        4_096, gt=0, description="most tokens in one embedding call", examples=["4096"]
    )

    @field_validator("chunk_tokens", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @property
    def budget(self) -> int:
        """Most tokens of a passage's embedding input."""
        return self.chunk_tokens or self.profile().chunk_tokens

    @property
    def access(self) -> AccessLevel:
        return AccessLevel.parse(self.default_access)

    @model_validator(mode="after")
    def _budget_fits(self) -> "IngestSettings":
        limit = self.profile().input_limit
        if self.budget > limit:
            raise ValueError(
                f"{PREFIX}CHUNK_TOKENS: {self.budget} is above what {self.embedding_profile} takes;"
                f" for example {PREFIX}CHUNK_TOKENS={limit // 2}"
            )
        return self

    @model_validator(mode="after")
    def _batch_fits(self) -> "IngestSettings":
        largest = max(self.embedding_batch_tokens, self.budget)
        if largest > self.embedding_max_reservation:
            raise ValueError(
                f"{PREFIX}EMBEDDING_BATCH_TOKENS: a call of {largest} tokens is more than"
                f" {PREFIX}EMBEDDING_MAX_RESERVATION allows;"
                f" for example {PREFIX}EMBEDDING_BATCH_TOKENS=4096"
            )
        return self
