from pydantic import Field

from chassis.settings import ProcessSettings


class LlmSettings(ProcessSettings):
    """What the language model's process is told."""

    llm_port: int = Field(
        8091, ge=1, le=65_535, description="HTTP port of the endpoint", examples=["8091"]
    )
    llm_slots: int = Field(
        2,
        ge=1,
        le=64,
        description="answers written at once; what comes beyond waits in the engine",
        examples=["2"],
    )
    llm_window: int = Field(
        4_096,
        ge=512,
        le=8_192,
        description="tokens of one slot, read and written, as the model counts them",
        examples=["4096"],
    )
    llm_threads: int = Field(
        1,
        ge=1,
        le=256,
        description="threads that calculate; each needs a core that nobody else uses",
        examples=["4"],
    )
