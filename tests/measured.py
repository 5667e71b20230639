"""The metrics of this test run, as an SDK collects them."""

from functools import cache

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    NumberDataPoint,
)


@cache
def _reader() -> InMemoryMetricReader:
    """Collects from now on: a process can set its provider once."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader


def values(**attributes: str) -> dict[str, float]:
    """By the metric's name: its value or its sum so far, where it has exactly these attributes."""
    data = _reader().get_metrics_data()
    return {
        metric.name: point.value if isinstance(point, NumberDataPoint) else point.sum
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint | HistogramDataPoint)
        and dict(point.attributes or {}) == attributes
    }
