from pydantic import Field

from chassis.settings import ProcessSettings


class ModelsSettings(ProcessSettings):
    """What the models process is told."""

    models_port: int = Field(
        8090, ge=1, le=65_535, description="HTTP port of the endpoint", examples=["8090"]
    )
    models_requests: int = Field(
        32,
        ge=1,
        le=1_000,
        description="requests that may be in work or waiting; the next one gets 429",
        examples=["32"],
    )
