"""An OTLP collector that keeps what it is sent."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class Metrics(MetricsServiceServicer):
    """Keeps every export of metrics."""

    def __init__(self) -> None:
        self.exported: list[ExportMetricsServiceRequest] = []

    def Export(  # noqa: N802 - the contract's name
        self, request: ExportMetricsServiceRequest, context: object
    ) -> ExportMetricsServiceResponse:
        self.exported.append(request)
        return ExportMetricsServiceResponse()


class Collector(TraceServiceServicer):
    """Listens on a free loopback port while entered."""

    def __init__(self) -> None:
        self.exported: list[ExportTraceServiceRequest] = []
        self.metrics = Metrics()
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(2))
        add_TraceServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call] # untyped
        add_MetricsServiceServicer_to_server(self.metrics, self._server)  # type: ignore[no-untyped-call] # untyped
        self._port = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def services_by_trace(self) -> dict[str, set[str]]:
        """The processes that took part in each trace, by trace id."""
        found: dict[str, set[str]] = {}
        with self._lock:
            for request in self.exported:
                for resource in request.resource_spans:
                    names = {item.key: item.value for item in resource.resource.attributes}
                    service = names["service.name"].string_value
                    for scope in resource.scope_spans:
                        for span in scope.spans:
                            found.setdefault(span.trace_id.hex(), set()).add(service)
        return found

    def metric_names(self) -> set[str]:
        """Names of all metrics that arrived."""
        return {
            metric.name
            for request in self.metrics.exported
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def text(self) -> str:
        """Everything that was exported, as text."""
        with self._lock:
            return "\n".join(str(request) for request in [*self.exported, *self.metrics.exported])

    def Export(  # noqa: N802 - the contract's name
        self, request: ExportTraceServiceRequest, context: object
    ) -> ExportTraceServiceResponse:
        with self._lock:
            self.exported.append(request)
        return ExportTraceServiceResponse()

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop(None).wait()
