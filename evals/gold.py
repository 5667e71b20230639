"""Gold sets: read from YAML, JSON Lines, or a folder of a retrieval benchmark."""

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import yaml
from pydantic import Field, ValidationError, model_validator

from chassis.errors import InvalidInput
from evals.case import Case, Fields, Text, Texts

M = TypeVar("M", bound=Fields)
SHOWN = 20  # problems of a file that are told at once


class Gate(Fields):
    """A bound that a figure has to keep, fixed before the run.

    `metric` is a name such as retrieval.ndcg@10, over the cases of the `categories`, all where none
    is named. `at_least` and `at_most` bound the value itself, `may_fall` and `may_rise` its change
    since an earlier run. `for_full` are held only against a candidate that is to answer without
    reviews.
    """

    metric: Text
    categories: Texts = ()
    at_least: float | None = None
    at_most: float | None = None
    may_fall: Annotated[float, Field(ge=0)] | None = None
    may_rise: Annotated[float, Field(ge=0)] | None = None
    for_full: bool = False

    @property
    def rule(self) -> tuple[str, float]:
        """Name and value of the one bound that is set."""
        bounds = self.model_dump(include={"at_least", "at_most", "may_fall", "may_rise"})
        return next((name, bound) for name, bound in bounds.items() if bound is not None)

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        bounds = (self.at_least, self.at_most, self.may_fall, self.may_rise)
        if sum(bound is not None for bound in bounds) != 1:
            raise ValueError("a gate has one of at_least, at_most, may_fall and may_rise")
        return self


class GoldFile(Fields):
    """A gold file in YAML. `demo` belongs to the demonstration."""

    questions: Annotated[tuple[Case, ...], Field(strict=False)]
    gates: Annotated[tuple[Gate, ...], Field(strict=False)] = ()
    demo: Mapping[str, str] = {}


class GatesFile(Fields):
    """Gates apart from the questions."""

    gates: Annotated[tuple[Gate, ...], Field(strict=False)]


@dataclass(frozen=True, slots=True)
class Gold:
    """`digest` is the SHA-256 of what was read, in hexadecimal."""

    name: str
    path: Path
    digest: str
    cases: tuple[Case, ...]
    gates: tuple[Gate, ...] = ()


def read(path: Path) -> Gold:
    """The gold set in a file. Raises InvalidInput that names file, case and field."""
    content = content_of(path)
    if path.suffix in {".yaml", ".yml"}:
        told = validated(GoldFile, _yaml(content, path), path)
    elif path.suffix in {".jsonl", ".ndjson"}:
        told = validated(GoldFile, {"questions": rows(content, path)}, path)
    else:
        raise InvalidInput(f"{path}: a gold set is .yaml, .jsonl or a folder", field="path")
    check_cases(told.questions, path)
    digest = hashlib.sha256(content).hexdigest()
    return Gold(path.stem, path, digest, told.questions, told.gates)


def read_gates(path: Path) -> tuple[Gate, ...]:
    """The gates in a YAML file. Raises InvalidInput as `read`."""
    return validated(GatesFile, _yaml(content_of(path), path), path).gates


def check_cases(cases: Sequence[Case], path: Path) -> None:
    """Raises InvalidInput where there are none, and naming every id that two of them have."""
    if not cases:
        raise InvalidInput(f"{path}: questions: there are none", field="questions")
    twice = [name for name, count in Counter(case.id for case in cases).items() if count > 1]
    if twice:
        raise InvalidInput(f"{path}: id: more than one case is {', '.join(twice)}", field="id")


def rows(content: bytes, path: Path) -> list[Any]:
    """The values of a file with one JSON value a line. Raises InvalidInput naming the line."""
    found = []
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise InvalidInput(f"{path}, line {number}: not JSON", field="line") from error
    return found


def content_of(path: Path) -> bytes:
    """The bytes of a file. Raises InvalidInput where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", field="path") from error


class _OnceLoader(yaml.SafeLoader):
    """YAML where a key that stands twice is an error, not the last one wins."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - as inherited
        said: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in said:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value!r} stands twice", problem_mark=key.start_mark
                )
            said.add(str(key.value))
        return super().construct_mapping(node, deep=deep)


def _yaml(content: bytes, path: Path) -> object:
    try:
        return yaml.load(content, Loader=_OnceLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidInput(f"{path}, line {line}: {error.problem}", field="yaml") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidInput(f"{path}: not YAML: {error}", field="yaml") from error
    except RecursionError as error:
        raise InvalidInput(f"{path}: nested too deep", field="yaml") from error


def validated(model: type[M], told: object, path: Path) -> M:
    """The model's instance. Raises InvalidInput with a line a problem: file, case, field."""
    try:
        return model.model_validate(told)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        lines = [_problem(path, told, one["loc"], one["msg"]) for one in problems[:SHOWN]]
        if len(problems) > SHOWN:
            lines.append(f"and {len(problems) - SHOWN} more")
        raise InvalidInput("\n".join(lines), field=_field(problems[0]["loc"])) from error


def _problem(path: Path, told: object, where: Sequence[int | str], said: str) -> str:
    said = said.removeprefix("Value error, ").partition(" or instance of")[0]
    if where[:1] == ("questions",) and len(where) > 1 and isinstance(told, Mapping):
        said = f"{_field(where[2:])}: {said}" if where[2:] else said
        return f"{path}, case {_name(told['questions'], where[1])}: {said}"
    return f"{path}: {_field(where)}: {said}" if where else f"{path}: {said}"


def _name(questions: Sequence[object], number: int | str) -> str:
    case = questions[number] if isinstance(number, int) else None
    name = case.get("id") if isinstance(case, Mapping) else None
    return str(name) if name else f"number {int(number) + 1}"


def _field(where: Sequence[int | str]) -> str:
    """The place of a value as it is written: relevant[0].grade."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return "".join(parts).removeprefix(".")
