"""What the gateway is told."""

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode

from chassis.identity import LEEWAY, AccessLevel
from chassis.settings import PREFIX
from gateway import identity
from gateway.admission import Waiting
from gateway.claims import LABELS, Claims
from gateway.connection import Bounds
from gateway.jobs.settings import JobSettings
from gateway.keys import Keys
from gateway.pipeline_settings import PipelineSettings, missing
from gateway.quota import Quota
from providers.settings import AnswerLimits, EmbeddingLimits

# Neither secrets that both sides know, nor none at all.
Algorithm = Literal["RS256", "ES256", "EdDSA"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")


class GatewaySettings(PipelineSettings, JobSettings, AnswerLimits, EmbeddingLimits):
    port: int = Field(50050, ge=1, le=65535, description="port for gRPC", examples=["50050"])
    http_port: int = Field(8080, ge=1, le=65535, description="port for HTTP", examples=["8080"])

    max_connections: int = Field(
        2_048,
        ge=1,
        description="HTTP connections open at once; the next one is closed",
        examples=["2048"],
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="origins of web pages from elsewhere that may call, parted by commas",
        examples=["https://wiki.example.org,https://portal.example.org:8443"],
    )

    ingest_target: str = Field(
        "dns:///127.0.0.1:50051",
        description="where ingest is reached",
        examples=["dns:///ingest:50051"],
    )

    answer_deadline: float = Field(
        60, gt=0, le=600, description="most seconds an answer may take", examples=["60"]
    )
    ingest_seconds: float = Field(
        600, gt=0, le=3_600, description="most seconds to wait for ingest", examples=["600"]
    )
    document_bytes: int = Field(
        16 * 1024 * 1024, gt=0, description="largest document in bytes", examples=["16777216"]
    )
    max_in_flight: int = Field(
        64, ge=1, description="questions answered at once by this process", examples=["64"]
    )
    shared_max_in_flight: int = Field(
        256, ge=1, description="questions answered at once by all gateways", examples=["256"]
    )
    room_lease_seconds: float = Field(
        10,
        ge=0.1,
        le=600,
        description="seconds after which a dead gateway's room is free for the others",
        examples=["10"],
    )
    admission_wait: float = Field(
        0,
        ge=0,
        le=600,
        description="most seconds a question may wait for room; at 0 none waits",
        examples=["0.5"],
    )
    admission_waiters: int = Field(
        32, ge=1, description="most questions that wait for room in this process", examples=["32"]
    )
    admission_decision_seconds: float = Field(
        0.05,
        gt=0,
        le=10,
        description="most seconds to wait for Redis before this process decides by itself",
        examples=["0.05"],
    )
    subject_requests_per_minute: float = Field(
        60, gt=0, description="questions that one subject may ask in a minute", examples=["60"]
    )
    subject_request_burst: float = Field(
        15, ge=1, description="as many of them may come at once", examples=["15"]
    )
    tenant_requests_per_minute: float = Field(
        600, gt=0, description="questions that one tenant may ask in a minute", examples=["600"]
    )
    tenant_request_burst: float = Field(
        120, ge=1, description="as many of them may come at once", examples=["120"]
    )

    issuer_key: Path | None = Field(
        None,
        description="PEM file with the public key of the issuer of callers' tokens",
        examples=["/etc/sluice/issuer.pub.pem"],
    )
    issuer_jwks_url: str = Field(
        "",
        description="address of the issuer's keys, a JWK set, instead of a key in a file",
        examples=["https://login.example.org/keys"],
    )
    issuer_algorithms: Annotated[tuple[Algorithm, ...], NoDecode] = Field(
        ("RS256", "ES256", "EdDSA"),
        min_length=1,
        description="what the issuer's published keys may sign with, parted by commas",
        examples=["RS256,ES256"],
    )
    issuer_clock_skew: float = Field(
        LEEWAY,
        ge=0,
        le=60,
        description="seconds that the issuer's clock may differ from ours",
        examples=["5"],
    )
    claim_tenant: str = Field(
        "tenant", min_length=1, description="claim with the tenant", examples=["org_id"]
    )
    claim_level: str = Field(
        "level",
        min_length=1,
        description="claim with the access level, or with values that stand for one",
        examples=["clearance"],
    )
    claim_groups: str = Field(
        "groups", min_length=1, description="claim with the list of groups", examples=["groups"]
    )
    claim_roles: str = Field(
        "roles",
        min_length=1,
        description="claim with the list of roles; dots lead into nested claims",
        examples=["realm_access.roles"],
    )
    claim_levels: Annotated[dict[str, str], NoDecode] = Field(
        {level: level for level in LABELS},
        min_length=1,
        description="access level that each value of the level's claim stands for",
        examples=["staff=team,board=restricted"],
    )
    issuer: str = Field(
        "",
        description="issuer that callers' tokens must name",
        examples=["https://login.example.org"],
    )
    audience: str = Field(
        identity.AUDIENCE,
        min_length=1,
        description="audience that callers' tokens must name",
        examples=["sluice"],
    )

    @field_validator("cors_origins", "issuer_algorithms", mode="before")
    @classmethod
    def _values_are_parted(cls, value: object) -> object:
        return value.replace(",", " ").split() if isinstance(value, str) else value

    @field_validator("cors_origins")
    @classmethod
    def _origins_hold(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError("an origin is a scheme and a host in lower case, without a path")
        return origins

    @field_validator("claim_levels", mode="before")
    @classmethod
    def _pairs_are_parted(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = (pair.rpartition("=") for pair in value.split(",") if pair.strip())
        return {name.strip(): level.strip() for name, _, level in pairs}

    @field_validator("claim_levels")
    @classmethod
    def _levels_hold(cls, levels: dict[str, str]) -> dict[str, str]:
        for level in levels.values():
            AccessLevel.parse(level)
        return levels

    @field_validator("issuer_jwks_url")
    @classmethod
    def _keys_come_safely(cls, url: str) -> str:
        parts = urlsplit(url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        if url and not (safe and parts.hostname):
            raise ValueError("an address that begins with https://, or with http:// on this host")
        return url

    @field_validator("issuer_key")
    @classmethod
    def _issuer_key_holds(cls, path: Path | None) -> Path | None:
        if path is not None:
            identity.issuer(path, "", "")
        return path

    @model_validator(mode="after")
    def _keys_are_set(self) -> "GatewaySettings":
        keyed = self.issuer_key is not None or self.issuer_jwks_url
        if self.issuer_key is not None and self.issuer_jwks_url:
            raise ValueError(
                f"{PREFIX}ISSUER_KEY and {PREFIX}ISSUER_JWKS_URL are both set: leave one of them"
            )
        if keyed and not self.issuer:
            raise missing("ISSUER", "the issuer that tokens name", "https://login.example.org")
        if self.env == "production" and not keyed:
            what = (
                "a PEM file with the public key of the issuer of callers' tokens, or"
                f" {PREFIX}ISSUER_JWKS_URL to the address of its keys"
            )
            raise missing("ISSUER_KEY", what, "/etc/sluice/issuer.pub.pem")
        return self

    @model_validator(mode="after")
    def _allowances_hold(self) -> "GatewaySettings":
        for scope in ("subject", "tenant"):
            try:
                self._quota(scope)
            except ValueError as error:
                raise ValueError(f"{PREFIX}{scope.upper()}_REQUEST_BURST: {error}") from error
        return self

    def bounds(self) -> Bounds:
        return Bounds(self.max_connections)

    def waiting(self) -> Waiting:
        return Waiting(self.admission_wait, self.admission_waiters)

    def subject_quota(self) -> Quota:
        return self._quota("subject")

    def tenant_quota(self) -> Quota:
        return self._quota("tenant")

    def _quota(self, scope: str) -> Quota:
        limit = getattr(self, f"{scope}_requests_per_minute")
        return Quota.of(scope, limit, getattr(self, f"{scope}_request_burst"))

    def trusted_issuer(self) -> identity.Trusted:
        """Whose tokens this process believes."""
        claims, skew = self._claims(), self.issuer_clock_skew
        if self.issuer_jwks_url:
            algorithms = self.issuer_algorithms
            terms = identity.Terms(self.issuer, self.audience, algorithms, claims, skew)
            return identity.PublishingIssuer(terms, Keys(self.issuer_jwks_url, algorithms))
        if self.issuer_key is None:
            return identity.development_issuer(self.audience)
        return identity.issuer(self.issuer_key, self.issuer, self.audience, claims, skew)

    def _claims(self) -> Claims:
        return Claims(
            self.claim_tenant,
            self.claim_level,
            self.claim_groups,
            self.claim_roles,
            {value: AccessLevel.parse(level) for value, level in self.claim_levels.items()},
        )
