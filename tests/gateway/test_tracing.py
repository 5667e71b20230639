"""One trace from the caller through every hop, and nothing of the question in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from sluice.answer.v1 import answer_pb2
from tests.gateway.house import ALL, FLOW, bearer, gateway, served, token

MARKER = "zanzibar-4711"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self) -> None:
        self.spans: list[Span] = []

    async def Export(  # noqa: N802 - the contract's name
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: object
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return trace_service_pb2.ExportTraceServiceResponse()


@asynccontextmanager
async def collecting() -> AsyncIterator[tuple[Collector, str]]:
    collector, server = Collector(), grpc.aio.server()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call] # published without types
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield collector, f"http://127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def test_one_trace_spans_all_hops_and_holds_no_question(tmp_path: Path) -> None:
    async with collecting() as (collector, endpoint):
        async with (
            served(*ALL) as behind,
            gateway(behind, tmp_path / "log", {"OTLP_ENDPOINT": endpoint}) as house,
        ):
            response = await house.http.post(
                f"/v1/answers?q={MARKER}",
                json={"question": f"Where is {MARKER}?"},
                headers={**bearer(), "traceparent": f"00-{TRACE}-{PARENT}-01"},
            )
            assert response.headers["x-trace-id"] == TRACE
            await house.http.get("/healthz")
            for stage in (behind[name] for name in FLOW):
                assert TRACE in stage.seen[0].metadata["traceparent"]
            await house.answers.Ask(
                answer_pb2.AskRequest(question=f"And {MARKER}?"),
                metadata=(("authorization", f"Bearer {token()}"),),
                timeout=10,
            )
        spans = collector.spans

    of_http = {span.name: span for span in spans if span.trace_id.hex() == TRACE}
    assert set(of_http) == {"POST /v1/answers", *FLOW}
    server = of_http["POST /v1/answers"]
    assert (server.kind, server.parent_span_id.hex()) == (Span.SPAN_KIND_SERVER, PARENT)
    assert {of_http[name].parent_span_id for name in FLOW} == {server.span_id}
    over_grpc = {span.name for span in spans if span.trace_id.hex() != TRACE}
    assert over_grpc == {"/sluice.answer.v1.AnswerService/Ask", *FLOW}
    assert all(MARKER.encode() not in span.SerializeToString() for span in spans)
