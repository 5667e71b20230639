"""As much of kustomize as deploy/k8s uses, so that manifests are checked where there is no kubectl.

Where there is one, a test holds this against it. What is not known here is refused.
"""

import copy
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]

KNOWN = {
    "apiVersion",
    "kind",
    "namespace",
    "labels",
    "resources",
    "components",
    "configMapGenerator",
    "secretGenerator",
    "patches",
    "images",
}
# How Kubernetes tells the elements of a list apart.
LIST_KEYS = ("name", "mountPath", "containerPort", "port")
REFERENCES = {
    "configMap": ("configMap", "configMapRef", "configMapKeyRef"),
    "secret": ("secret", "secretRef", "secretKeyRef"),
}


def render(folder: Path) -> list[Manifest]:
    """All objects of an overlay, as `kubectl kustomize` gives them but for the hashes in names."""
    objects = _built(folder, [])
    for made in [one for one in objects if one["metadata"].get("annotations", {}).pop("hash", "")]:
        _name_by_content(made, objects)
    for one in objects:
        if not one["metadata"].get("annotations", True):
            del one["metadata"]["annotations"]
    return objects


def _built(folder: Path, objects: list[Manifest]) -> list[Manifest]:
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())
    unknown = told.keys() - KNOWN
    if unknown:
        raise ValueError(f"{folder}: {', '.join(sorted(unknown))}")
    for name in told.get("resources", ()):
        objects += _built(folder / name, []) if (folder / name).is_dir() else _read(folder / name)
    for name in told.get("components", ()):
        objects = _built(folder / name, objects)
    for kind in ("ConfigMap", "Secret"):
        for one in told.get(f"{kind[0].lower()}{kind[1:]}Generator", ()):
            _generate(kind, one, folder, objects)
    for patch in told.get("patches", ()):
        _patch(patch, folder, objects)
    _transform(told, objects)
    return objects


def _read(path: Path) -> list[Manifest]:
    return [one for one in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader) if one]


def _transform(told: Manifest, objects: list[Manifest]) -> None:
    for one in objects:
        if told.get("namespace") and one["kind"] != "Namespace":
            one["metadata"]["namespace"] = told["namespace"]
        for pairs in told.get("labels", ()):
            places = [one, one["spec"]["template"]] if "template" in one.get("spec", {}) else [one]
            for place in places:
                place["metadata"].setdefault("labels", {}).update(pairs["pairs"])
        for container in containers(one):
            for image in told.get("images", ()):
                if container["image"].partition(":")[0] == image["name"]:
                    name = image.get("newName", image["name"])
                    container["image"] = f"{name}:{image['newTag']}"


def containers(one: Manifest) -> list[Manifest]:
    """Those of a workload's pods; none for other objects."""
    spec = one.get("spec", {})
    pod = spec.get("jobTemplate", {}).get("spec", spec).get("template", {}).get("spec", {})
    found: list[Manifest] = pod.get("containers", [])
    return found


def _generate(kind: str, told: Manifest, folder: Path, objects: list[Manifest]) -> None:
    data: dict[str, str] = {}
    for name in told.get("envs", ()):
        lines = (folder / name).read_text().splitlines()
        data |= dict(line.split("=", 1) for line in lines if line and line[0] != "#")
    for text in told.get("files", ()):
        key, _, path = text.rpartition("=")
        data[key or path] = (folder / path).read_text()
    data |= dict(text.split("=", 1) for text in told.get("literals", ()))
    if told.get("behavior") == "merge":
        (before,) = (one for one in objects if _is(one, kind, told["name"]))
        before["data"] |= data
        return
    options = told.get("options", {})
    meta: Manifest = {"name": told["name"], "annotations": {}}
    if "labels" in options:
        meta["labels"] = dict(options["labels"])
    if not options.get("disableNameSuffixHash"):
        meta["annotations"]["hash"] = "needed"
    objects.append({"apiVersion": "v1", "kind": kind, "metadata": meta, "data": data})


def _is(one: Manifest, kind: str, name: str) -> bool:
    return bool(one["kind"] == kind and one["metadata"]["name"] == name)


def _name_by_content(made: Manifest, objects: list[Manifest]) -> None:
    before = made["metadata"]["name"]
    digest = hashlib.sha256(json.dumps(made["data"], sort_keys=True).encode()).hexdigest()
    made["metadata"]["name"] = f"{before}-{digest[:10]}"
    keys = REFERENCES["configMap" if made["kind"] == "ConfigMap" else "secret"]
    for reference in _references(objects, keys):
        for field in ("name", "secretName"):
            if reference.get(field) == before:
                reference[field] = made["metadata"]["name"]


def _references(value: object, keys: tuple[str, ...]) -> Iterator[Manifest]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in keys and isinstance(inner, dict):
                yield inner
            yield from _references(inner, keys)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner, keys)


def _patch(told: Manifest, folder: Path, objects: list[Manifest]) -> None:
    text = told["patch"] if "patch" in told else (folder / told["path"]).read_text()
    change = yaml.safe_load(text)
    target = told.get("target") or {"kind": change["kind"], "name": change["metadata"]["name"]}
    chosen = [one for one in objects if _is_target(one, target)]
    # As kustomize: a selector may select nothing, a patch that names its object may not.
    if not chosen and "target" not in told:
        raise ValueError(f"{folder}: nothing is {target}")
    for one in chosen:
        if isinstance(change, list):
            for step in change:
                _step(one, step)
        else:
            merged = _merged(one, change)
            merged["metadata"]["name"] = one["metadata"]["name"]
            one.clear()
            one.update(merged)


def _is_target(one: Manifest, target: Manifest) -> bool:
    name = target.get("name", ".*")
    return one["kind"] == target["kind"] and bool(re.fullmatch(name, one["metadata"]["name"]))


def _step(one: Any, step: Manifest) -> None:  # noqa: ANN401 - whatever the path leads to
    *path, last = step["path"].strip("/").replace("~1", "/").split("/")
    for part in path:
        one = one[int(part)] if isinstance(one, list) else one[part]
    if step["op"] == "remove":
        del one[last]
    elif isinstance(one, list):
        one.insert(len(one) if last == "-" else int(last), step["value"])
    else:
        one[last] = step["value"]


def _merged(before: Any, change: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(before, dict) and isinstance(change, dict):
        both = copy.deepcopy(before)
        for key, value in change.items():
            both[key] = _merged(before[key], value) if key in before else copy.deepcopy(value)
        return both
    if isinstance(before, list) and isinstance(change, list):
        return _merged_lists(before, change)
    return copy.deepcopy(change)


def _merged_lists(before: list[Any], change: list[Any]) -> list[Any]:
    key = next((key for key in LIST_KEYS if all(_has(key, one) for one in [*before, *change])), "")
    if not key:
        return copy.deepcopy(change)
    both = {one[key]: one for one in copy.deepcopy(before)}
    for one in change:
        both[one[key]] = _merged(both[one[key]], one) if one[key] in both else copy.deepcopy(one)
    return list(both.values())


def _has(key: str, one: object) -> bool:
    return isinstance(one, dict) and key in one
