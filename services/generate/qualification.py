"""What qualifies a model to answer in another one's stead: a report on one exact candidate.

A report is a file with one JSON object; whoever evaluates a candidate writes it, with all of:

    format                 1
    report_id              name of the evaluation, to find it again; not empty
    fingerprint            what `fingerprint` gives for the endpoint as it was called
    model, host            the configured model and the endpoint's host, for people to read
    served_model           the model that the endpoint said it served while it was evaluated
    instructions_versions  every evaluated version of the instructions, as assemble tells it
    schema_version         `SCHEMA_VERSION` at the time
    validation_version     what `validation_version` gave for the support floor at the time
    levels                 access levels of sources that it may see: of public, team, restricted
    mode                   "full", or "review": then every answer needs a review
    passed                 whether it passed
    evaluated_at           RFC 3339 time with an offset

`Report` checks such a file, and `Report(...).model_dump_json(indent=2)` writes one. It holds as
long as nothing that it names has changed.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from chassis.identity import AccessLevel
from providers.endpoint import Endpoint
from services.generate import contract

Level = Literal["public", "team", "restricted"]

# Raised by hand with every change to what an answer is judged by: contract, marks, support, repair.
VALIDATION = 4


class Unqualified(ValueError):
    """The message says why, in words for operators."""


class Report(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    report_id: str = Field(min_length=1)
    fingerprint: str = Field(min_length=1)
    model: str = Field(min_length=1)
    host: str = Field(min_length=1)
    served_model: str = Field(min_length=1)
    instructions_versions: frozenset[str] = Field(min_length=1)
    schema_version: str = Field(min_length=1)
    validation_version: str = Field(min_length=1)
    levels: frozenset[Level] = Field(min_length=1)
    mode: Literal["full", "review"]
    passed: bool
    evaluated_at: AwareDatetime


@dataclass(frozen=True, slots=True)
class Standard:
    """What a report has to name in order to hold: the candidate and the rules as they are now."""

    fingerprint: str
    schema_version: str
    validation_version: str


@dataclass(frozen=True, slots=True)
class Qualification:
    """What a report that holds allows. `evaluation` is the report's id."""

    evaluation: str
    served_model: str
    instructions: frozenset[str]
    levels: frozenset[AccessLevel]
    is_review: bool


def fingerprint(endpoint: Endpoint) -> str:
    """One word for everything that makes a candidate answer as it does."""
    temperature = endpoint.options.temperature
    # 0 and 0.0 are one temperature, but two texts.
    same = {} if temperature is None else {"temperature": float(temperature)}
    return _digest(
        {
            "model": endpoint.model,
            "host": host(endpoint.base_url),
            "has_schema": endpoint.has_schema,
            "options": {**asdict(endpoint.options), **same},
        }
    )


def host(base_url: str) -> str:
    """Host and port of an endpoint, in lower case."""
    return urlsplit(base_url).netloc.rpartition("@")[2].lower()


def validation_version(support_floor: float) -> str:
    """The rules that an answer is judged by, and the floor of its support."""
    return f"{VALIDATION}:{support_floor:g}"


def read(path: Path) -> Report:
    """Raises Unqualified where there is no such report, or it cannot be understood."""
    try:
        return Report.model_validate_json(path.read_bytes())
    except OSError as error:
        raise Unqualified(f"its report cannot be read: {error.strerror}") from error
    except ValidationError as error:
        fields = {".".join(map(str, item["loc"])) or "JSON" for item in error.errors()}
        raise Unqualified(f"its report is not valid: {', '.join(sorted(fields))}") from error


def qualified(report: Report, standard: Standard) -> Qualification:
    """What the report allows. Raises Unqualified where it did not pass or something has changed."""
    if not report.passed:
        raise Unqualified(f"it did not pass {report.report_id}")
    for word, evaluated, now in (
        ("the model, its endpoint or its parameters", report.fingerprint, standard.fingerprint),
        ("the answer's schema", report.schema_version, standard.schema_version),
        ("the rules of validation", report.validation_version, standard.validation_version),
    ):
        if evaluated != now:
            raise Unqualified(f"requalification is due: {word} changed since {report.report_id}")
    return Qualification(
        report.report_id,
        report.served_model,
        report.instructions_versions,
        frozenset(AccessLevel.parse(level) for level in report.levels),
        is_review=report.mode == "review",
    )


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


SCHEMA_VERSION = _digest(contract.SCHEMA)
