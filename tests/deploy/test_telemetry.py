"""One file names all telemetry, and dashboard, alerts and autoscalers know no other names."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from typing import Any

import promql_parser
import pytest
import yaml
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry

from deploy import dashboard
from local.suite import STAGES
from tests.deploy import cluster, instruments
from tests.deploy.cluster import ROOT

# What Prometheus, its operator and the kubelet's exporter add.
TARGET_LABELS = {"namespace", "pod", "job", "le"}
OTHERS = {
    "up": set[str](),
    "kube_horizontalpodautoscaler_status_current_replicas": {"horizontalpodautoscaler"},
    "kube_horizontalpodautoscaler_spec_max_replicas": {"horizontalpodautoscaler"},
}
ENDS = {"call": ("ok", "cancelled", "fail"), "attempt": ("ok", "cancelled", "fail")}


@cache
def schema() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "telemetry.yaml").read_text())
    return told


def test_every_metric_of_the_code_is_in_the_schema_and_the_reverse() -> None:
    made = instruments.instruments()
    told = {one.name: (one.kind, one.unit) for one in made}
    assert len(told) == len(made)
    stated = {name: (one["kind"], one["unit"]) for name, one in schema()["metrics"].items()}
    assert told == stated


def test_every_attribute_of_a_metric_is_in_the_schema_and_the_reverse() -> None:
    """A file that makes instruments has no other dictionaries than their attributes."""
    stated: dict[Any, set[str]] = {}
    for one in instruments.instruments():
        attributes = schema()["metrics"][one.name]["attributes"]
        stated.setdefault(one.path, set()).update(attributes)
    values = {"requests", "tokens", "places"}  # of the attribute `dimension`
    for path, attributes in stated.items():
        assert instruments.keys(path) - values == attributes, path


def test_a_histogram_brings_bounds_that_suit_it() -> None:
    """Those of the SDK are made for milliseconds."""
    histograms = [one for one in instruments.instruments() if one.kind == "histogram"]
    assert histograms
    assert [one.name for one in histograms if not one.bounded] == []


def test_spans_and_their_attributes_and_events_are_in_the_schema_and_the_reverse() -> None:
    stated = schema()["spans"]
    assert stated["names"] == sorted(STAGES)
    assert set(stated["attributes"]) == instruments.span_attributes()
    told = set(instruments.events())
    assert all(any(fnmatch(event, one) for one in told) for event in stated["events"])
    ended = {
        one.replace("*", end) for one in told for end in ENDS.get(one.partition(":")[0], ("",))
    }
    assert ended == set(stated["events"])


def test_every_event_of_the_log_is_in_the_schema_and_the_reverse() -> None:
    assert sorted(instruments.log_events()) == schema()["logs"]


@cache
def exported() -> dict[str, set[str]]:
    """Names as Prometheus has them, as the exporter makes them, each with its labels."""
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(
        disable_target_info=True, scope_info_enabled=False, registry=registry
    )
    provider = MeterProvider([reader])
    meter = provider.get_meter("schema")
    for name, one in schema()["metrics"].items():
        attributes = dict.fromkeys(one["attributes"], "some")
        match one["kind"]:
            case "counter":
                meter.create_counter(name, one["unit"]).add(1, attributes)
            case "gauge":
                meter.create_gauge(name, one["unit"]).set(1, attributes)
            case "histogram":
                meter.create_histogram(name, one["unit"]).record(1, attributes)
            case "updowncounter":
                meter.create_up_down_counter(name, one["unit"]).add(1, attributes)
    found: dict[str, set[str]] = {}
    for family in registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    provider.shutdown()
    return found


def alerts() -> list[dict[str, Any]]:
    (group,) = cluster.named("prod", "PrometheusRule", "sluice")["spec"]["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def panels() -> list[dict[str, Any]]:
    data = cluster.named("prod", "ConfigMap", "sluice-dashboard")["data"]
    found: list[dict[str, Any]] = json.loads(data["sluice.json"])["panels"]
    return found


def scaled() -> str:
    (trigger,) = cluster.named("everything", "ScaledObject", "worker")["spec"]["triggers"]
    return str(trigger["metadata"]["query"])


QUERIES = {
    **{rule["alert"]: rule["expr"] for rule in alerts()},
    **{
        f"{panel['title']}: {target['legendFormat']}": target["expr"]
        for panel in panels()
        for target in panel.get("targets", ())
    },
    "worker": scaled(),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_asks_for_what_is_exported_by_labels_that_it_has(query: str) -> None:
    text = query.replace("$__rate_interval", "5m").replace("$namespace", "sluice")
    tree = promql_parser.parse(text)
    known = exported() | OTHERS
    selectors = list(_selectors(tree))
    assert selectors
    labels = set(TARGET_LABELS)
    for selector in selectors:
        assert selector.name in known
        labels |= known[selector.name]
        matched = {one.name for one in selector.matchers.matchers}
        assert matched <= known[selector.name] | TARGET_LABELS
    for by in re.findall(r"by \(([^)]*)\)", text):
        assert set(re.split(r",\s*", by)) <= labels


def _selectors(tree: Any) -> Iterator[Any]:  # noqa: ANN401 - the parser's classes share none
    if isinstance(tree, promql_parser.VectorSelector):
        yield tree
    for part in ("expr", "lhs", "rhs", "vector_selector", "selector", "param"):
        inner = getattr(tree, part, None)
        if inner is not None:
            yield from _selectors(inner)
    for argument in getattr(tree, "args", None) or ():
        yield from _selectors(argument)


def test_every_metric_is_on_the_dashboard() -> None:
    drawn = " ".join(target["expr"] for panel in panels() for target in panel.get("targets", ()))
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exported()}
    assert [name for name in sorted(families) if name not in drawn] == []


def test_the_operators_page_describes_every_panel_in_its_order() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    told = page.partition("## The dashboard\n")[2].partition("\n## ")[0]
    described = [
        line
        for row, drawn in dashboard.ROWS.items()
        for line in (f"**{row}**", *(f"| {one.title} | {one.description} |" for one in drawn))
    ]
    said = [line for line in told.splitlines() if line.startswith(("**", "| "))]
    assert [line for line in said if line != "| panel | what it says |"] == described


def test_the_dashboard_is_what_its_source_renders() -> None:
    assert dashboard.TARGET.read_text() == dashboard.text()
    places = [panel["gridPos"] for panel in panels()]
    taken = {
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    }
    assert len(taken) == sum(place["w"] * place["h"] for place in places)
    assert max(x for x, _ in taken) < 24
    drawn = [panel for panel in panels() if panel["type"] != "row"]
    assert all(panel["description"] for panel in drawn)


def test_an_alert_tells_what_to_do() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    headings = set(re.findall(r"^#+ (Sluice\w+)$", page, re.MULTILINE))
    assert headings == {rule["alert"] for rule in alerts()}
    for rule in alerts():
        anchor = f"docs/operating.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook"] == anchor


def test_autoscalers_ask_for_what_the_adapter_hands_over() -> None:
    told = yaml.safe_load((ROOT / "deploy" / "prometheus-adapter.yaml").read_text())
    handed = {rule["seriesQuery"].partition("{")[0] for rule in told["rules"]["custom"]}
    asked = {
        metric["pods"]["metric"]["name"]
        for one in cluster.of_kind("prod", "HorizontalPodAutoscaler")
        for metric in one["spec"]["metrics"]
        if metric["type"] == "Pods"
    }
    assert asked == handed
    assert handed <= exported().keys()
    for rule in told["rules"]["custom"]:
        query = rule["metricsQuery"].replace("<<.GroupBy>>", "pod")
        query = query.replace("<<.Series>>", rule["seriesQuery"].partition("{")[0])
        assert promql_parser.parse(query.replace("<<.LabelMatchers>>", 'pod="one"'))
