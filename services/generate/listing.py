"""The file of candidates that may answer where the first one cannot, in order.

It is YAML:

    pools:                            # allowances other than the first candidate's, by name
      backup:
        requests_per_minute: 100
        tokens_per_minute: 50000
        in_flight: 4
        max_reservation: 20000
    candidates:
      - id: backup
        pool: backup                  # or answers, the first candidate's
        base_url: https://models.example/v1
        model: small-model
        qualification: backup.json    # its report; qualification.py says what stands in it

A candidate may have besides: key_file, or `credentials: entra` or `none`; structured_output,
limit_parameter, temperature, reasoning_effort, output_tokens, attempt_seconds, input_price and
output_price, all as the settings of the first candidate. Paths start at the file's folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from capacity import InvalidLimit, Limits
from providers.endpoint import ChatOptions, Credentials, Effort, Endpoint, LimitParameter, Price
from providers.settings import HTTP

FIRST_POOL = "answers"
# Pools of the suite itself, which a file must not redefine.
TAKEN = frozenset({FIRST_POOL, "embeddings"})
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"

Name = Annotated[str, Field(pattern=NAME, max_length=64)]


@dataclass(frozen=True, slots=True)
class Listed:
    """A candidate and the report that is to qualify it."""

    endpoint: Endpoint
    report: Path


@dataclass(frozen=True, slots=True)
class Shares:
    """How every allowance is divided."""

    interactive_reserve: float
    local_share: float


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Pool(_Strict):
    requests_per_minute: float = Field(gt=0)
    tokens_per_minute: float = Field(gt=0)
    in_flight: int = Field(gt=0)
    max_reservation: int = Field(gt=0)


class _Candidate(_Strict):
    id: Name
    pool: Name
    base_url: str = Field(pattern=HTTP)
    model: str = Field(min_length=1)
    qualification: Path
    credentials: Credentials = "key"
    key_file: Path | None = None
    structured_output: bool = False
    limit_parameter: LimitParameter = "max_tokens"
    temperature: float | None = Field(0.0, ge=0, le=2)
    reasoning_effort: Effort | None = None
    output_tokens: int = Field(1_000, gt=0, le=100_000)
    attempt_seconds: float = Field(120.0, gt=0, le=600)
    input_price: float | None = Field(None, ge=0)
    output_price: float | None = Field(None, ge=0)


class _File(_Strict):
    pools: dict[Name, _Pool] = Field(default_factory=dict)
    candidates: list[_Candidate]


def read(path: Path, first: Limits, shares: Shares) -> list[Listed]:
    """Raises ValueError in words for operators; whether reports hold is not asked here."""
    try:
        file = _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is no YAML") from error
    except ValidationError as error:
        raise ValueError(f"{path.name}: {_first(error)}") from error
    pools = {FIRST_POOL: first, **_pools(file, shares)}
    ids = [candidate.id for candidate in file.candidates]
    if len(set(ids)) < len(ids) or "primary" in ids:
        raise ValueError(f"{path.name}: ids must differ from each other and from primary")
    return [_listed(candidate, pools, path.parent) for candidate in file.candidates]


def _pools(file: _File, shares: Shares) -> dict[str, Limits]:
    taken = TAKEN.intersection(file.pools)
    if taken:
        raise ValueError(f"pools.{min(taken)}: this name is the suite's own")
    return {name: _limits(name, pool, shares) for name, pool in file.pools.items()}


def _limits(name: str, pool: _Pool, shares: Shares) -> Limits:
    try:
        limits = Limits(**pool.model_dump(), interactive_reserve=shares.interactive_reserve)
        limits.shared(shares.local_share)
    except InvalidLimit as error:
        raise ValueError(f"pools.{name}.{error.setting}: {error.complaint}") from error
    return limits


def _listed(candidate: _Candidate, pools: Mapping[str, Limits], folder: Path) -> Listed:
    if candidate.pool not in pools:
        raise ValueError(f"{candidate.id}: there is no pool {candidate.pool}")
    priced = candidate.input_price is not None and candidate.output_price is not None
    endpoint = Endpoint(
        id=candidate.id,
        base_url=candidate.base_url,
        model=candidate.model,
        pool=candidate.pool,
        limits=pools[candidate.pool],
        options=ChatOptions(
            output_tokens=candidate.output_tokens,
            limit_parameter=candidate.limit_parameter,
            temperature=candidate.temperature,
            reasoning_effort=candidate.reasoning_effort,
        ),
        attempt_seconds=candidate.attempt_seconds,
        credentials=candidate.credentials,
        key=_key(candidate, folder),
        has_schema=candidate.structured_output,
        price=Price(candidate.input_price or 0, candidate.output_price or 0) if priced else None,
    )
    return Listed(endpoint, folder / candidate.qualification)


def _key(candidate: _Candidate, folder: Path) -> str:
    if candidate.key_file is None:
        return ""
    try:
        return (folder / candidate.key_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{candidate.id}.key_file: {error.strerror}") from error


def _first(error: ValidationError) -> str:
    """Where it is wrong and how; values are not repeated, they may be secrets."""
    item = error.errors()[0]
    return f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg']}"
