from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from local.qdrant_node.errors import StartError

_PREFIX = "SLUICE_QDRANT_"


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=_PREFIX)

    data: Path = Field(
        default=Path(".sluice/qdrant"),
        description="Folder that holds the collections; one node at a time opens it.",
    )
    port: int = Field(default=6334, ge=1, le=65_535, description="Loopback port of the gRPC API.")


def read_settings() -> Settings:
    """The settings in the environment. Raises StartError naming the wrong variable."""
    try:
        return Settings()
    except ValidationError as failure:
        fault = failure.errors()[0]
        name = str(fault["loc"][0])
        example = Settings.model_fields[name].default
        raise StartError(
            f"{_PREFIX}{name.upper()}={fault['input']}: {fault['msg']}; for example {example}"
        ) from failure
