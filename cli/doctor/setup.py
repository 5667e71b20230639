"""What the processes are told: by the suite that runs, its profile, or a pod's environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from chassis.settings import PREFIX, ProcessSettings, complaints
from cli.doctor.finding import Finding, ok, problem
from gateway.settings import GatewaySettings
from gateway.worker.settings import WorkerSettings
from local import ports, profile, state
from local.state import RunningSuite
from local.suite import environment
from services.assemble.settings import AssembleSettings
from services.generate.settings import GenerateSettings
from services.ingest.settings import IngestSettings
from services.retrieve.settings import RetrieveSettings

KINDS: Mapping[str, type[ProcessSettings]] = {
    "ingest": IngestSettings,
    "retrieve": RetrieveSettings,
    "assemble": AssembleSettings,
    "generate": GenerateSettings,
    "gateway": GatewaySettings,
    "worker": WorkerSettings,
}
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Setup:
    """`settings` are of the processes that would start; `findings` tell of the others.

    `said` are the variables that somebody set: what is not among them is started here.
    """

    data: Path
    running: RunningSuite | None
    ports: Mapping[str, int]
    said: Mapping[str, str]
    settings: Mapping[str, ProcessSettings]
    findings: list[Finding]

    @property
    def is_local(self) -> bool:
        """Whether this machine holds the suite, or would."""
        return self.said.get(f"{PREFIX}ENV") != "production"

    def of(self, kind: type[S]) -> S | None:
        """The settings of that kind, if that process would start."""
        return next((one for one in self.settings.values() if isinstance(one, kind)), None)

    def is_there(self, variable: str) -> bool:
        """Whether something should answer at that address now."""
        return self.running is not None or f"{PREFIX}{variable}" in self.said


def read(data: Path, names: tuple[str, ...]) -> Setup:
    """Of the processes named, of all without a name. Raises Refused."""
    running = state.read(data)
    if os.environ.get(f"{PREFIX}ENV") == "production":
        said: Mapping[str, str] = {**os.environ}
        numbers = ports.told(said)
        told = said
    else:
        said = profile.load(running.profile if running else profile.COMPLETE, os.environ)
        numbers = running.ports if running else ports.chosen(said)
        told = environment(data, numbers, said)
    settings, findings = {}, []
    for name in names or KINDS:
        try:
            settings[name] = _loaded(KINDS[name], told)
            findings.append(ok(f"settings of {name}", "as they have to be"))
        except ValidationError as error:
            mend = "set the variable it names"
            lines = complaints(KINDS[name], error)
            findings += [problem(f"settings of {name}", line, mend) for line in lines]
    return Setup(data, running, numbers, said, settings, findings)


def _loaded(kind: type[ProcessSettings], told: Mapping[str, str]) -> ProcessSettings:
    fields: dict[str, Any] = {
        name: told[f"{PREFIX}{name.upper()}"]
        for name in kind.model_fields
        if f"{PREFIX}{name.upper()}" in told
    }
    return kind(**fields)
