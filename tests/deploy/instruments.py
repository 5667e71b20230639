"""What the code tells about itself, read from its text: metrics, span attributes, events, logs."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("libs", "services", "gateway", "cli", "local")
KINDS = {
    "create_counter": "counter",
    "create_gauge": "gauge",
    "create_histogram": "histogram",
    "create_up_down_counter": "updowncounter",
}
OTHER_KINDS = ("observable_counter", "observable_gauge", "observable_up_down_counter")
LEVELS = ("debug", "info", "warning", "error", "exception")
POSITIONS = ("name", "unit", "description")


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric. `bounded` says whether a histogram brings its own bounds."""

    path: Path
    name: str
    kind: str
    unit: str
    bounded: bool


@cache
def _trees() -> dict[Path, ast.Module]:
    paths = (path for folder in CODE for path in sorted((ROOT / folder).rglob("*.py")))
    return {path: ast.parse(path.read_text()) for path in paths}


@cache
def calls() -> tuple[tuple[Path, str, str, ast.Call], ...]:
    """Every call of the code: its file, whose method it is (or nobody's), its name, the call."""
    return tuple(
        (path, *_called(node.func), node)
        for path, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    )


def _called(function: ast.expr) -> tuple[str, str]:
    if isinstance(function, ast.Attribute):
        owner = function.value
        return owner.id if isinstance(owner, ast.Name) else "", function.attr
    return "", function.id if isinstance(function, ast.Name) else ""


def instruments() -> list[Instrument]:
    """Raises ValueError for one that is not written out, or of a kind that nobody uses here."""
    return [
        _instrument(path, method, call)
        for path, _, method, call in calls()
        if method in KINDS or method.removeprefix("create_") in OTHER_KINDS
    ]


def _instrument(path: Path, method: str, call: ast.Call) -> Instrument:
    told = dict(zip(POSITIONS, call.args, strict=False))
    told |= {word.arg: word.value for word in call.keywords if word.arg}
    if "description" not in told or method not in KINDS:
        raise ValueError(f"{path}:{call.lineno}")
    name, unit = (ast.literal_eval(told[key]) if key in told else "" for key in ("name", "unit"))
    bounded = "explicit_bucket_boundaries_advisory" in told
    return Instrument(path, name, KINDS[method], unit, bounded)


def keys(path: Path) -> set[str]:
    """The texts that are keys of dictionaries in the file."""
    return {
        key.value
        for node in ast.walk(_trees()[path])
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def span_attributes() -> set[str]:
    """Those that this code sets, at a span's start or later."""
    found = set()
    for path, _, method, call in calls():
        if method == "set_attribute":
            found.add(ast.literal_eval(call.args[0]))
        if method in {"start_as_current_span", "start_span", "set_attributes"}:
            found |= keys(path) & set(_texts(path, call))
    return found


def _texts(path: Path, call: ast.Call) -> Iterator[str]:
    """Keys of the dictionaries that the call is given, or that the names it is given stand for."""
    given = [*call.args, *(word.value for word in call.keywords)]
    names = {one.id for one in given if isinstance(one, ast.Name)}
    assigned = (
        node.value
        for node in ast.walk(_trees()[path])
        if isinstance(node, ast.Assign) and names & {ast.unparse(one) for one in node.targets}
    )
    for value in (*given, *assigned):
        for node in ast.walk(value):
            if isinstance(node, ast.Dict):
                yield from (ast.literal_eval(key) for key in node.keys if key)


def events() -> Iterator[str]:
    """What is told to the trace of a question; a * stands for what is put in."""
    for path, _, method, call in calls():
        if method == "tell" and path.is_relative_to(ROOT / "services" / "generate") and call.args:
            (argument,) = call.args
            if isinstance(argument, ast.Constant):
                yield str(argument.value)
            elif isinstance(argument, ast.JoinedStr):
                parts = argument.values
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts
                )


def log_events() -> set[str]:
    """Raises ValueError for a log line whose event is not written out."""
    return {
        ast.literal_eval(call.args[0])
        for _, owner, method, call in calls()
        if owner == "log" and method in LEVELS
    }
