"""What deploy/k8s makes of a cluster, by overlay, and how to look things up in it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tests.deploy.kustomize import Manifest, containers, render

ROOT = Path(__file__).parents[2]
K8S = ROOT / "deploy" / "k8s"
NAME = "app.kubernetes.io/name"
WORKLOADS = ("Deployment", "StatefulSet", "CronJob")

# Beside the overlays as they are: what a production would choose otherwise.
CHOSEN = {
    "azure": ("keys", "profile-azure", "qdrant", "valkey"),
    "external": ("keys", "profile-openai", "external-stores", "monitoring"),
    "everything": (
        *("keys", "profile-openai", "qdrant", "valkey"),
        *("monitoring", "tracing", "keda", "sync", "mutual-tls"),
    ),
}
OVERLAYS = ("dev", "prod", *CHOSEN)


def write(folder: Path, overlay: str) -> Path:
    """The folder of the overlay; one of CHOSEN is written to `folder`, images as in production."""
    if overlay not in CHOSEN:
        return K8S / "overlays" / overlay
    told = yaml.safe_load((K8S / "overlays" / "prod" / "kustomization.yaml").read_text())
    start = os.path.relpath(K8S, folder)
    told["resources"] = [f"{start}/base"]
    told["components"] = [f"{start}/components/{name}" for name in CHOSEN[overlay]]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(told))
    return folder


@cache
def objects(overlay: str) -> Sequence[Manifest]:
    with TemporaryDirectory() as folder:
        return tuple(render(write(Path(folder).resolve(), overlay)))


def of_kind(overlay: str, *kinds: str) -> list[Manifest]:
    return [one for one in objects(overlay) if one["kind"] in kinds]


def named(overlay: str, kind: str, name: str) -> Manifest:
    (found,) = (one for one in of_kind(overlay, kind) if one["metadata"]["name"] == name)
    return found


def name(one: Manifest) -> str:
    return str(one["metadata"]["name"])


def pod(workload: Manifest) -> Manifest:
    """The template of its pods, with metadata and spec."""
    spec = workload["spec"]
    found: Manifest = spec.get("jobTemplate", {}).get("spec", spec)["template"]
    return found


def processes(overlay: str) -> dict[str, Manifest]:
    """Our own Deployments by name."""
    return {
        name(one): one
        for one in of_kind(overlay, "Deployment")
        if containers(one)[0]["name"] == "process"
    }


def environment(overlay: str, workload: Manifest) -> dict[str, str]:
    """What its process is told. A secret's value is its own name and key."""
    (container,) = containers(workload)
    maps = {name(one): one["data"] for one in of_kind(overlay, "ConfigMap")}
    told: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        told |= maps[source["configMapRef"]["name"]]
    for variable in container.get("env", ()):
        if "value" in variable:
            told[variable["name"]] = variable["value"]
        elif "secretKeyRef" in variable["valueFrom"]:
            reference = variable["valueFrom"]["secretKeyRef"]
            told[variable["name"]] = f"{reference['name']}/{reference['key']}"
    return told


def selected(selector: Manifest, labels: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Those labels that a label selector matches."""
    for one in labels:
        equal = selector.get("matchLabels", {}).items() <= one.items()
        if equal and all(_expressed(rule, one) for rule in selector.get("matchExpressions", ())):
            yield one


def _expressed(rule: dict[str, Any], labels: dict[str, str]) -> bool:
    if rule["operator"] != "In":
        raise ValueError(f"an operator nobody reads here: {rule['operator']}")
    return labels.get(rule["key"]) in rule["values"]
