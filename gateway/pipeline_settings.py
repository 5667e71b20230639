"""What every process is told that answers questions through the stages."""

from pathlib import Path

from pydantic import Field, field_validator, model_validator

from chassis.identity import signing_key
from chassis.settings import PREFIX, ProcessSettings


class PipelineSettings(ProcessSettings):
    retrieve_target: str = Field(
        "dns:///127.0.0.1:50052",
        description="where retrieve is reached",
        examples=["dns:///retrieve:50052"],
    )
    assemble_target: str = Field(
        "dns:///127.0.0.1:50053",
        description="where assemble is reached",
        examples=["dns:///assemble:50053"],
    )
    generate_target: str = Field(
        "dns:///127.0.0.1:50054",
        description="where generate is reached",
        examples=["dns:///generate:50054"],
    )
    retrieve_seconds: float = Field(
        10, gt=0, le=600, description="most seconds to wait for retrieve", examples=["10"]
    )
    assemble_seconds: float = Field(
        10, gt=0, le=600, description="most seconds to wait for assemble", examples=["10"]
    )
    generate_seconds: float = Field(
        600, gt=0, le=600, description="most seconds to wait for generate", examples=["60"]
    )

    internal_signing_key: Path | None = Field(
        None,
        description="PEM file with the Ed25519 private key that signs internal tokens",
        examples=["/etc/sluice/internal.pem"],
    )

    @field_validator("internal_signing_key")
    @classmethod
    def _signing_key_holds(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_file():
            raise ValueError(f"{path} is no file")
        signing_key(path)
        return path

    @model_validator(mode="after")
    def _tokens_can_be_signed(self) -> "PipelineSettings":
        if self.env == "production" and self.internal_signing_key is None:
            what = "a PEM file with the Ed25519 private key that signs internal tokens"
            raise missing("INTERNAL_SIGNING_KEY", what, "/etc/sluice/internal.pem")
        return self


def missing(name: str, what: str, example: str) -> ValueError:
    return ValueError(
        f"{PREFIX}{name} is missing: set it to {what}, such as {example};"
        f" or set {PREFIX}ENV=development and no {PREFIX}ISSUER_KEY for well-known keys"
    )
