"""One OpenTelemetry trace across all hops; exported over OTLP when an endpoint is set."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

FLUSH_MILLISECONDS = 2_000


def start(process: str, endpoint: str) -> TracerProvider:
    """Set the process's tracer. Without an endpoint spans carry ids for the logs, no more."""
    provider = TracerProvider(
        sampler=ALWAYS_ON if endpoint else ALWAYS_OFF,
        resource=Resource.create({"service.name": f"sluice-{process}"}),
    )
    if endpoint:
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    return provider


def stop(provider: TracerProvider) -> None:
    """Export what is left, within a time limit."""
    provider.force_flush(FLUSH_MILLISECONDS)
    provider.shutdown()
