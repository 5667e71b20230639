"""One OpenTelemetry trace across all hops, and metrics; both exported over OTLP when told where."""

from dataclasses import dataclass

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

FLUSH_MILLISECONDS = 2_000


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a process exports. `meters` is None where nobody listens."""

    tracers: TracerProvider
    meters: MeterProvider | None

    def stop(self) -> None:
        """Export what is left, within a time limit."""
        self.tracers.force_flush(FLUSH_MILLISECONDS)
        self.tracers.shutdown()
        if self.meters:
            self.meters.shutdown(FLUSH_MILLISECONDS)


def start(process: str, endpoint: str) -> Telemetry:
    """Set the process's tracer and meter. Without an endpoint spans carry ids for the logs only."""
    resource = Resource.create({"service.name": f"sluice-{process}"})
    tracers = TracerProvider(sampler=ALWAYS_ON if endpoint else ALWAYS_OFF, resource=resource)
    meters = None
    if endpoint:
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=endpoint))
        meters = MeterProvider([reader], resource=resource)
        metrics.set_meter_provider(meters)
    trace.set_tracer_provider(tracers)
    return Telemetry(tracers, meters)
