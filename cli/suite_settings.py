"""The settings of stages as a suite has them: its profile's, and those of this environment.

What only the process was told that started the suite is not known here.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from chassis.errors import InvalidInput
from chassis.settings import PREFIX, StageSettings
from local import profile, state
from local.suite import environment
from services.generate.settings import GenerateSettings
from services.retrieve.settings import RetrieveSettings

S = TypeVar("S", bound=StageSettings)

# Fields of retrieve that decide what is found.
SEARCH = {
    *("top_k", "search_mode", "fusion", "dense_weight", "search_candidates", "diversity"),
    *(f"score_threshold_{space}" for space in ("cosine", "bm25", "rrf", "min_max")),
}


def generate(data: Path) -> GenerateSettings:
    """Raises InvalidInput for settings that cannot be."""
    return _loaded(GenerateSettings, data)


def retrieve(data: Path) -> RetrieveSettings:
    """Raises InvalidInput for settings that cannot be."""
    return _loaded(RetrieveSettings, data)


def retrieval(data: Path) -> list[str]:
    """How the suite on the folder searches, as name=value; empty where none runs there."""
    if state.read(data) is None:
        return []
    told = retrieve(data).model_dump(mode="json", include=SEARCH)
    return [f"{name}={value}" for name, value in told.items() if value is not None]


def _loaded(kind: type[S], data: Path) -> S:
    told = _told(data)
    fields: dict[str, Any] = {
        name: told[f"{PREFIX}{name.upper()}"]
        for name in kind.model_fields
        if f"{PREFIX}{name.upper()}" in told
    }
    try:
        # Nothing is served with them, so that no key has to be at hand.
        return kind(**{**fields, "env": "development"})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = f"{PREFIX}{str(problem['loc'][0]).upper()}: " if problem["loc"] else ""
        raise InvalidInput(
            f"{where}{problem['msg'].removeprefix('Value error, ')}", field="settings"
        ) from error


def _told(data: Path) -> Mapping[str, str]:
    suite = state.read(data)
    if suite is None:
        return os.environ
    return environment(data, suite.ports, profile.load(suite.profile, os.environ))
