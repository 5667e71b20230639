"""What we use of the kinds that operators define: kubernetes-validate does not know them."""

from typing import Any

TEXT = {"type": "string", "minLength": 1}
DURATION = {"type": "string", "pattern": r"^[0-9]+(ms|s|m|h|d)$"}


def of(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def many(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


_EXPRESSION = of({"key": TEXT, "operator": {"enum": ["In"]}, "values": many(TEXT)})
_ENDPOINT = of({"port": TEXT}, {"interval": DURATION, "path": TEXT})
_RULE = of(
    {
        "alert": {"type": "string", "pattern": "^Sluice[A-Za-z]+$"},
        "expr": TEXT,
        "for": DURATION,
        "labels": of({"severity": {"enum": ["critical", "warning"]}}),
        "annotations": of({"summary": TEXT, "runbook": TEXT}),
    }
)
_TRIGGER = of(
    {
        "type": {"const": "prometheus"},
        "metricType": {"enum": ["AverageValue", "Value"]},
        "metadata": of({"serverAddress": TEXT, "query": TEXT, "threshold": TEXT}),
    }
)
_TARGET = of({"apiVersion": TEXT, "kind": {"const": "Deployment"}, "name": TEXT})
_NUMBER = {"type": "integer", "minimum": 0}

_KEY = of(
    {
        "algorithm": {"enum": ["ECDSA"]},
        "size": {"enum": [256]},
        "rotationPolicy": {"enum": ["Always", "Never"]},
    }
)
_HOURS = {"type": "string", "pattern": "^[0-9]+h$"}

SPECS = {
    "Issuer": {"oneOf": [of({"selfSigned": of({})}), of({"ca": of({"secretName": TEXT})})]},
    "Certificate": of(
        {
            "secretName": TEXT,
            "issuerRef": of({"name": TEXT, "kind": {"const": "Issuer"}}),
            "privateKey": _KEY,
            "duration": _HOURS,
            "renewBefore": _HOURS,
        },
        {
            "isCA": {"type": "boolean"},
            "commonName": TEXT,
            "dnsNames": many(TEXT),
            "usages": many({"enum": ["server auth", "client auth"]}),
        },
    ),
    "ServiceMonitor": of(
        {"selector": of({"matchExpressions": many(_EXPRESSION)}), "endpoints": many(_ENDPOINT)}
    ),
    "PrometheusRule": of({"groups": many(of({"name": TEXT, "rules": many(_RULE)}))}),
    "ScaledObject": of(
        {"scaleTargetRef": _TARGET, "triggers": many(_TRIGGER)},
        {
            "minReplicaCount": _NUMBER,
            "maxReplicaCount": _NUMBER,
            "pollingInterval": _NUMBER,
            "cooldownPeriod": _NUMBER,
            "fallback": of({"failureThreshold": _NUMBER, "replicas": _NUMBER}),
        },
    ),
}
