"""Settings from the environment, validated once at start."""

import sys
from functools import cached_property
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from chassis import certificates, identity
from chassis.certificates import Certificates, Paths

PREFIX = "SLUICE_"
EXIT_BAD_SETTINGS = 2

S = TypeVar("S", bound="ProcessSettings")


class TrustSettings(BaseSettings):
    """By what processes know each other: all three files, or none and plain connections."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    tls_certificate: Path | None = Field(
        None,
        description="PEM file with this process's certificate, for its name as others call it",
        examples=["/etc/sluice/tls/tls.crt"],
    )
    tls_key: Path | None = Field(
        None,
        description="PEM file with the private key of that certificate",
        examples=["/etc/sluice/tls/tls.key"],
    )
    tls_authority: Path | None = Field(
        None,
        description="PEM file with the authorities whose certificates are accepted",
        examples=["/etc/sluice/tls/ca.crt"],
    )

    @model_validator(mode="after")
    def _files_hold_together(self) -> Self:
        try:
            self.certificates  # noqa: B018 - reads them
        except certificates.Unusable as error:
            raise ValueError(
                f"{PREFIX}TLS_{error.file.upper()}: {error}; for example"
                f" {PREFIX}TLS_{error.file.upper()}={_example(type(self), f'tls_{error.file}')}"
            ) from error
        return self

    @cached_property
    def certificates(self) -> Certificates | None:
        """None for plain connections. Raises Unusable."""
        files = {name: getattr(self, f"tls_{name}") for name in ("certificate", "key", "authority")}
        if not any(files.values()):
            return None
        for name, path in files.items():
            if path is None:
                raise certificates.Unusable(name, "missing, while others of the three are set")
        return Certificates(Paths(**files))


class ProcessSettings(TrustSettings):
    """What every process of the suite is told."""

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
    health_port: int = Field(
        0,
        ge=0,
        le=65_535,
        description="port on which health is told to who has no certificate; 0 opens none",
        examples=["50040"],
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
    said = _example(kind, name)
    example = f"; for example {PREFIX}{name.upper()}={said}" if said else ""
    return f"{PREFIX}{name.upper()}: {message.removeprefix('Value error, ')}{example}"


def _example(kind: type[BaseSettings], name: str) -> str:
    field = kind.model_fields.get(name)
    return str(field.examples[0]) if field and field.examples else ""
