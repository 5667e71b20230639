"""Settings from the environment, validated once at start."""

import sys
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from chassis import identity

PREFIX = "SLUICE_"
EXIT_BAD_SETTINGS = 2

S = TypeVar("S", bound="ProcessSettings")


class ProcessSettings(BaseSettings):
    """What every process of the suite is told."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    env: Literal["development", "production"] = Field(
        "production",
        description="development admits the well-known development keys",
        examples=["development"],
    )
    host: str = Field("127.0.0.1", description="address to listen on", examples=["0.0.0.0"])  # noqa: S104 - an example
    grace_seconds: float = Field(
        20, gt=0, le=600, description="time to finish calls after SIGTERM", examples=["20"]
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least severe event that is logged", examples=["info"]
    )
    otlp_endpoint: str = Field(
        "",
        description="OTLP/gRPC collector for traces and metrics; empty exports none",
        examples=["http://127.0.0.1:4317"],
    )
    metrics_port: int = Field(
        0,
        ge=0,
        le=65_535,
        description="port on which Prometheus finds the metrics; 0 opens none",
        examples=["51050"],
    )


class StageSettings(ProcessSettings):
    """What every stage behind the gateway is told besides."""

    internal_verify_key: Path | None = Field(
        None,
        description="PEM file with the Ed25519 public key that internal tokens are checked with",
        examples=["/etc/sluice/internal.pub.pem"],
    )

    @field_validator("internal_verify_key")
    @classmethod
    def _holds_a_key(cls, path: Path | None) -> Path | None:
        try:
            identity.verifying_key(path)
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error.strerror}") from error
        return path

    @model_validator(mode="after")
    def _production_needs_a_key(self) -> "StageSettings":
        if self.env == "production" and self.internal_verify_key is None:
            raise ValueError(
                f"{PREFIX}INTERNAL_VERIFY_KEY is missing: set it to a PEM file with the gateway's"
                " Ed25519 public key, such as /etc/sluice/internal.pub.pem,"
                f" or set {PREFIX}ENV=development to use the well-known development key"
            )
        return self


def load(kind: type[S]) -> S:
    """The settings, or exit 2 after one line a wrong variable: name, what is wrong, an example."""
    try:
        return kind()
    except ValidationError as error:
        for line in complaints(kind, error):
            print(line, file=sys.stderr)  # noqa: T201 - logging is not set up yet
        raise SystemExit(EXIT_BAD_SETTINGS) from None


def complaints(kind: type[BaseSettings], error: ValidationError) -> list[str]:
    """One line a wrong variable. Values are not repeated: they may be secrets."""
    return [_complaint(kind, item["loc"], item["msg"]) for item in error.errors()]


def _complaint(kind: type[BaseSettings], where: tuple[int | str, ...], message: str) -> str:
    if not where:
        return message.removeprefix("Value error, ")
    name = str(where[0]).removeprefix(PREFIX.lower())
    field = kind.model_fields.get(name)
    examples = field.examples if field and field.examples else []
    example = f"; for example {PREFIX}{name.upper()}={examples[0]}" if examples else ""
    return f"{PREFIX}{name.upper()}: {message.removeprefix('Value error, ')}{example}"
