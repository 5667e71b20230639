"""One OpenTelemetry trace across all hops, and metrics.

Both are exported over OTLP when told where; Prometheus may fetch the metrics besides.
"""

from dataclasses import dataclass
from wsgiref.simple_server import WSGIServer

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from prometheus_client import CollectorRegistry, start_http_server

from chassis.settings import ProcessSettings

FLUSH_MILLISECONDS = 2_000


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a process exports. `meters` is None where nobody listens, `page` without a port."""

    tracers: TracerProvider
    meters: MeterProvider | None
    page: WSGIServer | None

    def stop(self) -> None:
        """Export what is left, within a time limit."""
        self.tracers.force_flush(FLUSH_MILLISECONDS)
        self.tracers.shutdown()
        if self.page:
            self.page.shutdown()
            self.page.server_close()
        if self.meters:
            self.meters.shutdown(FLUSH_MILLISECONDS)


def start(process: str, settings: ProcessSettings) -> Telemetry:
    """Set the process's tracer and meter. Without an endpoint spans carry ids for the logs only.

    Raises OSError when the port for Prometheus cannot be listened on.
    """
    endpoint = settings.otlp_endpoint
    resource = Resource.create({"service.name": f"sluice-{process}"})
    tracers = TracerProvider(sampler=ALWAYS_ON if endpoint else ALWAYS_OFF, resource=resource)
    readers: list[MetricReader] = []
    if endpoint:
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=endpoint)))
    page = None
    if settings.metrics_port:
        registry = CollectorRegistry()
        readers.append(PrometheusMetricReader(scope_info_enabled=False, registry=registry))
        page, _ = start_http_server(settings.metrics_port, settings.host, registry)
    meters = MeterProvider(readers, resource=resource) if readers else None
    if meters:
        metrics.set_meter_provider(meters)
    trace.set_tracer_provider(tracers)
    return Telemetry(tracers, meters, page)
