"""Every overlay renders, and each object is one that Kubernetes would take."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from kubernetes_validate.utils import schema_contents
from referencing import Registry, Resource

from tests.deploy import cluster
from tests.deploy.cluster import OVERLAYS, WORKLOADS
from tests.deploy.custom_kinds import SPECS
from tests.deploy.kustomize import Manifest, render

# The oldest release that knows all we use: the sleep before a stop and the native gRPC probes.
RELEASE = "1.32"
SCHEMAS = "kubernetes-json-schema/v1.32.0-local-strict"


@cache
def _definitions() -> Resource[Any]:
    return Resource.from_contents(schema_contents(f"{SCHEMAS}/_definitions.json", RELEASE))


@cache
def _validator(kind: str, version: str) -> Draft202012Validator:
    """As kubernetes_validate makes it for every object anew, which takes a fifth of a second."""
    if kind in SPECS:
        return Draft202012Validator({"properties": {"spec": SPECS[kind]}, "required": ["spec"]})
    group = version.partition("/")[0].partition(".")[0]
    name = f"{kind.lower()}-{version.replace(version.partition('/')[0], group).replace('/', '-')}"
    schema = schema_contents(f"{SCHEMAS}/{name}.json", RELEASE)
    registry: Registry[Any] = _definitions() @ Registry()
    return Draft202012Validator(schema, registry=registry.crawl())


def test_every_object_holds_to_the_schema_of_its_kind() -> None:
    different = {
        json.dumps(one, sort_keys=True) for name in OVERLAYS for one in cluster.objects(name)
    }
    for text in sorted(different):
        one = json.loads(text)
        _validator(one["kind"], one["apiVersion"]).validate(one)
    kinds = {json.loads(text)["kind"] for text in different}
    assert kinds >= {"Deployment", "StatefulSet", "CronJob", "NetworkPolicy", *SPECS}


def test_a_misspelt_field_is_found() -> None:
    (one,) = (each for each in cluster.of_kind("prod", "Ingress"))
    validator = _validator(one["kind"], one["apiVersion"])
    assert validator.is_valid(one)
    assert not validator.is_valid({**one, "spec": {**one["spec"], "ruls": []}})


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_object_stands_twice_and_all_are_in_the_namespace(overlay: str) -> None:
    found = [(one["kind"], cluster.name(one)) for one in cluster.objects(overlay)]
    assert len(found) == len(set(found))
    spaces = {one["metadata"].get("namespace") for one in cluster.objects(overlay)}
    assert spaces == {"sluice", None}
    (space,) = cluster.of_kind(overlay, "Namespace")
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_pods_refer_to_is_there_or_a_secret_of_the_operators(overlay: str) -> None:
    kinds = ("ConfigMap", "Secret", "ServiceAccount")
    there = {(one["kind"], cluster.name(one)) for one in cluster.of_kind(overlay, *kinds)}
    made = cluster.of_kind(overlay, "Certificate")
    there |= {("Secret", one["spec"]["secretName"]) for one in made}
    wanted = {
        reference
        for one in cluster.of_kind(overlay, *WORKLOADS)
        for reference in _wanted(cluster.pod(one)["spec"])
    }
    missing = wanted - there
    assert {kind for kind, _ in missing} <= {"Secret"}
    assert (overlay == "dev") == (not missing)
    page = (cluster.ROOT / "docs" / "operating.md").read_text()
    assert not [name for _, name in missing if f"`{name}`" not in page]


def _wanted(pod: Manifest) -> set[tuple[str, str]]:
    text = json.dumps(pod)
    found = (
        {("ServiceAccount", pod["serviceAccountName"])} if "serviceAccountName" in pod else set()
    )
    for volume in pod.get("volumes", ()):
        if "secret" in volume:
            found.add(("Secret", volume["secret"]["secretName"]))
        if "configMap" in volume:
            found.add(("ConfigMap", volume["configMap"]["name"]))
    for kind, key in (("ConfigMap", '"configMapRef": {'), ("Secret", '"secretKeyRef": {')):
        found |= {
            (kind, json.loads("{" + part[: part.index("}") + 1])["name"])
            for part in text.split(key)[1:]
        }
    return found


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl to compare with")
@pytest.mark.parametrize("overlay", ["dev", "everything"])
def test_kubectl_renders_the_same(overlay: str, tmp_path: Path) -> None:
    folder = cluster.write(tmp_path.resolve(), overlay)
    said = subprocess.run(
        ["kubectl", "kustomize", folder], capture_output=True, text=True, check=False, timeout=60
    )
    assert said.returncode == 0, said.stderr
    theirs = [one for one in yaml.load_all(said.stdout, Loader=yaml.CSafeLoader) if one]
    assert _comparable(render(folder)) == _comparable(theirs)


def _comparable(objects: list[Manifest]) -> dict[tuple[str, str], Any]:
    names = {cluster.name(one) for one in objects if one["kind"] in {"ConfigMap", "Secret"}}
    found = {}
    for one in objects:
        text = json.dumps(_in_order(_secrets_apart(one)))
        for name in names:
            text = text.replace(f'"{name}"', f'"{name.rpartition("-")[0]}"')
        plain = json.loads(text)
        found[plain["kind"], plain["metadata"]["name"]] = plain
    return found


def _secrets_apart(one: Manifest) -> Manifest:
    """A secret's values are encoded by kubectl, and never matter here."""
    if one["kind"] == "Secret":
        return {**one, "data": sorted(one["data"]), "type": "Opaque"}
    return one


def _in_order(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The order of named elements says nothing, but for the containers' arguments."""
    if isinstance(value, dict):
        return {key: _in_order(inner) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        inner = [_in_order(one) for one in value]
        return (
            sorted(inner, key=json.dumps) if all(isinstance(one, dict) for one in inner) else inner
        )
    return value
