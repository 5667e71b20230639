"""Renders the Grafana dashboard: python deploy/dashboard.py writes the JSON of the component.

A row a question that operators ask; a panel says in its title what is drawn, in its description
what to read from it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("k8s") / "components" / "monitoring" / "sluice.json"
PROMETHEUS = {"type": "prometheus", "uid": "${prometheus}"}
WIDTH, HEIGHT, PANELS_A_ROW = 8, 8, 3
NS = 'namespace="$namespace"'


@dataclass(frozen=True, slots=True)
class Panel:
    """`queries` are expressions by their legend; `most` is the end of the axis, if it has one."""

    title: str
    description: str
    unit: str
    queries: dict[str, str]
    stacked: bool = False
    most: float | None = None


def rate(metric: str, by: str, matching: str = "") -> str:
    selector = f"{metric}{{{NS}{matching}}}"
    return f"sum by ({by}) (rate({selector}[$__rate_interval]))"


def quantile(share: float, metric: str, by: str, matching: str = "") -> str:
    buckets = rate(f"{metric}_bucket", f"le, {by}" if by else "le", matching)
    return f"histogram_quantile({share}, {buckets})"


def gauge(function: str, metric: str, by: str, matching: str = "") -> str:
    return f"{function} by ({by}) ({metric}{{{NS}{matching}}})"


ROWS: dict[str, list[Panel]] = {
    "What people get": [
        Panel(
            "Answers by mode",
            "GENERATED and EXTRACTIVE are answers, ABSTAINED is an honest no, PREVIOUS stands in, "
            "UNAVAILABLE is ours to mend.",
            "reqps",
            {"{{mode}}": rate("sluice_gateway_answered_total", "mode")},
            stacked=True,
        ),
        Panel(
            "Why there was no answer",
            "Reasons of UNAVAILABLE answers; each has a section in the operators' page.",
            "reqps",
            {"{{reason}}": rate("sluice_gateway_answered_total", "reason", ', mode="UNAVAILABLE"')},
            stacked=True,
        ),
        Panel(
            "Time of an answer",
            "From the seat to the verdict, all modes.",
            "s",
            {
                "p50": quantile(0.5, "sluice_gateway_answer_duration_seconds", ""),
                "p95": quantile(0.95, "sluice_gateway_answer_duration_seconds", ""),
                "p99": quantile(0.99, "sluice_gateway_answer_duration_seconds", ""),
            },
        ),
        Panel(
            "Refused at the door",
            "NO_ROOM: all seats taken. ALLOWANCE_...: a caller asked more often than it may.",
            "reqps",
            {"{{reason}}": rate("sluice_gateway_refused_total", "reason")},
            stacked=True,
        ),
        Panel(
            "Questions in work",
            "Seats taken by replica, and who waits for one. Autoscaling keeps the mean at its "
            "target.",
            "short",
            {
                "{{pod}}": gauge("max", "sluice_gateway_in_flight", "pod"),
                "{{pod}} waiting": gauge("max", "sluice_gateway_waiting", "pod"),
            },
        ),
        Panel(
            "Withdrawn text",
            "Streams whose shown sentences were taken back, by reason. It should lie near zero.",
            "reqps",
            {"{{reason}}": rate("sluice_gateway_retracted_total", "reason")},
            stacked=True,
        ),
    ],
    "Where time goes": [
        Panel(
            "Calls in work by stage",
            "What the stages' autoscalers look at, as the mean of a stage's replicas.",
            "short",
            {"{{job}}": gauge("avg", "sluice_rpc_in_flight", "job")},
        ),
        Panel(
            "Time of a call, p95",
            "By method, at the stage that serves it.",
            "s",
            {"{{rpc_method}}": quantile(0.95, "rpc_server_call_duration_seconds", "rpc_method")},
        ),
        Panel(
            "Calls that failed",
            "By method and code. RESOURCE_EXHAUSTED is a refusal, DATA_LOSS a payload that broke "
            "the rules and was not shown.",
            "reqps",
            {
                "{{rpc_method}} {{rpc_response_status_code}}": rate(
                    "rpc_server_call_duration_seconds_count",
                    "rpc_method, rpc_response_status_code",
                    ', rpc_response_status_code!="OK"',
                )
            },
        ),
    ],
    "The provider's allowance": [
        Panel(
            "What is left of each pool",
            "Share of what fits: at zero of any dimension a class waits or is refused.",
            "percentunit",
            {
                "{{pool}} {{class}} {{dimension}}": gauge(
                    "min", "sluice_capacity_left", "pool, class, dimension"
                )
            },
            most=1,
        ),
        Panel(
            "Attempts admitted and refused",
            "Attempts, not questions: one question may make several.",
            "reqps",
            {
                "{{pool}} {{class}}": rate("sluice_capacity_granted_total", "pool, class"),
                "refused {{pool}} {{class}} {{reason}}": rate(
                    "sluice_capacity_refused_total", "pool, class, reason"
                ),
            },
        ),
        Panel(
            "Tokens",
            "Used as the provider reports, beside what was reserved for the same attempts. Far "
            "apart: estimates cost throughput.",
            "short",
            {
                "{{pool}} used": rate("sluice_capacity_tokens_used_total", "pool"),
                "{{pool}} reserved": rate("sluice_capacity_tokens_estimated_total", "pool"),
                "{{pool}} unknown": rate("sluice_capacity_tokens_unknown_total", "pool"),
            },
        ),
        Panel(
            "In flight and waiting",
            "Attempts at once over all replicas, and those with a start in the near future.",
            "short",
            {
                "{{pool}} {{class}}": gauge("max", "sluice_capacity_in_flight", "pool, class"),
                "{{pool}} waiting": gauge("max", "sluice_capacity_waiting", "pool"),
            },
        ),
        Panel(
            "Cooldown",
            "Seconds until a throttled pool admits again. Often above zero: the limits set here "
            "are above what the account has.",
            "s",
            {"{{pool}}": gauge("max", "sluice_capacity_cooldown_seconds", "pool")},
        ),
        Panel(
            "Where decisions are made",
            "0: in Redis. 1: each process by its own small share. 2: nowhere, all is refused.",
            "short",
            {
                "{{pool}} {{pod}}": gauge("max", "sluice_capacity_mode", "pool, pod"),
                "{{pool}} lost": rate("sluice_capacity_lost_total", "pool"),
            },
            most=2,
        ),
        Panel(
            "Time of a decision, p99",
            "Asking Redis for room. Near SLUICE_CAPACITY_DECISION_SECONDS it counts as lost.",
            "s",
            {"{{pool}}": quantile(0.99, "sluice_capacity_decision_duration_seconds", "pool")},
        ),
        Panel(
            "What the provider says is left",
            "Its own headers, where it sends them.",
            "short",
            {
                "{{pool}} requests": gauge("min", "sluice_provider_requests_remaining", "pool"),
                "{{pool}} tokens": gauge("min", "sluice_provider_tokens_remaining", "pool"),
            },
        ),
        Panel(
            "Token counts that differ, p95",
            "How far the provider's count of input tokens is from ours. `more` eats allowance that "
            "was not reserved.",
            "short",
            {
                "{{pool}} {{reported}}": quantile(
                    0.95, "sluice_provider_input_tokens_difference", "pool, reported"
                )
            },
        ),
    ],
    "Models": [
        Panel(
            "Calls to models by end",
            "Physical calls by candidate: ok, cancelled, or why they failed.",
            "reqps",
            {"{{candidate}} {{end}}": rate("sluice_generate_attempts_total", "candidate, end")},
            stacked=True,
        ),
        Panel(
            "Time of a call to a model",
            "By candidate, its whole stream.",
            "s",
            {
                "{{candidate}} p50": quantile(
                    0.5, "sluice_generate_attempt_duration_seconds", "candidate"
                ),
                "{{candidate}} p95": quantile(
                    0.95, "sluice_generate_attempt_duration_seconds", "candidate"
                ),
            },
        ),
        Panel(
            "Time of a call to a provider, p95",
            "Answers and embeddings by model; `error_type` is empty where the call went well.",
            "s",
            {
                "{{gen_ai_operation_name}} {{gen_ai_request_model}} {{error_type}}": quantile(
                    0.95,
                    "gen_ai_client_operation_duration_seconds",
                    "gen_ai_operation_name, gen_ai_request_model, error_type",
                )
            },
        ),
        Panel(
            "Tokens by model",
            "Read and written each second, as the provider reports them.",
            "short",
            {
                "{{gen_ai_request_model}} {{gen_ai_token_type}}": rate(
                    "gen_ai_client_token_usage_sum", "gen_ai_request_model, gen_ai_token_type"
                )
            },
            stacked=True,
        ),
        Panel(
            "Attempts a question",
            "Above one: retries, repairs and switches cost time and allowance.",
            "short",
            {
                "attempts": f"{rate('sluice_generate_attempts_total', 'namespace')} / "
                f"{rate('sluice_generate_calls_total', 'namespace')}"
            },
        ),
        Panel(
            "Outcomes of generate",
            "By mode and reason, before the gateway looks at rights again.",
            "reqps",
            {"{{mode}} {{reason}}": rate("sluice_generate_outcomes_total", "mode, reason")},
            stacked=True,
        ),
        Panel(
            "Time of a question in generate, p95",
            "With its waits, retries and repairs, by shape.",
            "s",
            {"{{shape}}": quantile(0.95, "sluice_generate_call_duration_seconds", "shape")},
        ),
        Panel(
            "Support of answers, lowest tenth",
            "Share of the least supported sentence's weight that its sources carry, in nine of ten "
            "answers at least. A fall after a change of model or prompt is a regression.",
            "percentunit",
            {"{{candidate}}": quantile(0.1, "sluice_generate_support", "candidate")},
            most=1,
        ),
        Panel(
            "Requests that the guard refused",
            "Too large or malformed, by field: a caller's mistake, or a try.",
            "reqps",
            {"{{field}}": rate("sluice_generate_guard_refused_total", "field")},
        ),
    ],
    "Jobs": [
        Panel(
            "Oldest job",
            "How long the oldest unfinished job has waited: what the workers scale by.",
            "s",
            {"oldest": gauge("max", "sluice_jobs_oldest_age_seconds", "namespace")},
        ),
        Panel(
            "Unfinished jobs",
            "Waiting or in work.",
            "short",
            {"jobs": gauge("max", "sluice_jobs_open", "namespace")},
        ),
        Panel(
            "Attempts at jobs by end",
            "postponed ones are tried again; lost ones belonged to a worker that had died.",
            "reqps",
            {"{{ending}}": rate("sluice_jobs_attempts_total", "ending")},
            stacked=True,
        ),
    ],
}


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        panels.append(
            _at({"type": "row", "title": title, "collapsed": False}, len(panels), 0, y, 24, 1)
        )
        y += 1
        for number, panel in enumerate(row):
            line, column = divmod(number, PANELS_A_ROW)
            place = (column * WIDTH, y + line * HEIGHT, WIDTH, HEIGHT)
            panels.append(_at(_drawn(panel), len(panels), *place))
        y += HEIGHT * -(-len(row) // PANELS_A_ROW)
    return {
        "title": "Sluice",
        "uid": "sluice",
        "tags": ["sluice"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_datasource(), _namespace()]},
        "panels": panels,
    }


def _at(panel: dict[str, Any], number: int, *place: int) -> dict[str, Any]:
    return {**panel, "id": number + 1, "gridPos": dict(zip("xywh", place, strict=True))}


def _drawn(panel: Panel) -> dict[str, Any]:
    custom: dict[str, Any] = {"fillOpacity": 10, "showPoints": "never"}
    if panel.stacked:
        custom |= {"fillOpacity": 40, "stacking": {"mode": "normal"}}
    axis = {"unit": panel.unit, "min": 0, "custom": custom}
    if panel.most is not None:
        axis["max"] = panel.most
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": PROMETHEUS,
        "fieldConfig": {"defaults": axis, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": chr(ord("A") + number), "expr": query, "legendFormat": legend}
            for number, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _datasource() -> dict[str, Any]:
    return {"name": "prometheus", "label": "Source", "type": "datasource", "query": "prometheus"}


def _namespace() -> dict[str, Any]:
    query = "label_values(sluice_gateway_in_flight, namespace)"
    return {
        "name": "namespace",
        "label": "Namespace",
        "type": "query",
        "datasource": PROMETHEUS,
        "query": {"query": query, "refId": "namespace"},
        "refresh": 2,
    }


def text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
