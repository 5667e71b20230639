"""Everything that a run found: kept as JSON, and read again to compare with."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from chassis.errors import InvalidInput
from evals.calibration import Sweep
from evals.comparison import Comparison, Side
from evals.figures import Figure
from evals.gates import Judged
from evals.qualification import Qualification
from evals.result import CaseResult

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What was evaluated; a difference here explains a difference in the figures.

    `corpus_revision` stands for every live document's content, `gold_digest` for the gold set.
    `search_mode` and `diversity` are "default" where the stage decided; how it is set stands in
    `retrieval` as name=value, if it is known. `code_revision` ends with + where files were changed,
    and is empty without git.
    """

    gold: str
    gold_digest: str
    tenant: str
    documents: int
    corpus_revision: str
    chunking_version: str
    embedding_profile: str
    search_mode: str
    diversity: str
    retrieval: Sequence[str]
    score_space: str
    instructions_versions: Sequence[str]
    models: Sequence[str]
    repeat: int
    code_version: str
    code_revision: str


@dataclass(frozen=True, slots=True)
class Results:
    """`date` is RFC 3339 in UTC, `seconds` how long the run took.

    `groups` are the figures by category; `outcomes` counts answers by mode and reason.
    """

    format: int
    date: str
    seconds: float
    settings: Settings
    groups: Mapping[str, Mapping[str, Figure]]
    outcomes: Mapping[str, int]
    gates: Sequence[Judged]
    comparison: Comparison | None
    calibration: Sequence[Sweep]
    qualification: Qualification | None
    cases: Sequence[CaseResult]

    @property
    def side(self) -> Side:
        return side(self.date, self.settings, self.groups, self.cases)


_SHAPE = TypeAdapter(Results)


def side(
    date: str,
    settings: Settings,
    groups: Mapping[str, Mapping[str, Figure]],
    cases: Sequence[CaseResult],
) -> Side:
    """A run as comparison takes it."""
    return Side(date, asdict(settings), groups, cases)


def plain(results: Results) -> dict[str, Any]:
    """The results as JSON's own values."""
    found: dict[str, Any] = _SHAPE.dump_python(results, mode="json")
    return found


def to_json(results: Results) -> bytes:
    """The results as UTF-8 JSON."""
    return _SHAPE.dump_json(results, indent=2)


def read(path: Path) -> Results:
    """The results in a file. Raises InvalidInput where it holds none of this format."""
    try:
        return _SHAPE.validate_json(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", field="baseline") from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "JSON"
        raise InvalidInput(
            f"{path} holds no results of this version: {where}", field="baseline"
        ) from error
