"""What the assemble process is told."""

from pydantic import Field, model_validator

from chassis.settings import PREFIX, StageSettings
from services.assemble.budget import Budget


class AssembleSettings(StageSettings):
    port: int = Field(50053, ge=1, le=65535, description="gRPC port", examples=["50053"])
    context_limit: int = Field(
        8_192, ge=1_024, description="the generation model's window in tokens", examples=["128000"]
    )
    output_reserve: int = Field(
        800, ge=0, description="tokens kept free for the answer", examples=["800"]
    )
    framing_reserve: int = Field(
        256,
        ge=0,
        description="tokens kept free for what the provider puts around messages",
        examples=["256"],
    )
    max_sources: int = Field(
        20, ge=1, le=5_000, description="most sources in one request to the model", examples=["20"]
    )

    @model_validator(mode="after")
    def _something_is_left(self) -> "AssembleSettings":
        if self.budget.allowance <= 0:
            raise ValueError(
                f"{PREFIX}CONTEXT_LIMIT: {self.context_limit} leaves nothing after"
                f" {PREFIX}OUTPUT_RESERVE and {PREFIX}FRAMING_RESERVE;"
                f" for example {PREFIX}CONTEXT_LIMIT=8192"
            )
        return self

    @property
    def budget(self) -> Budget:
        """The budget of requests that bring none."""
        return Budget(self.context_limit, self.output_reserve, self.framing_reserve)
