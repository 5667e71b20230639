"""One trace from the door to the last stage, with nobody's words in it."""

from tests.suite.collector import Collector
from tests.suite.conftest import Running, wait_for

MARKER = "zebrafish-marker"
METRICS = {
    "rpc.server.call.duration",
    "sluice.capacity.granted",
    "sluice.capacity.left",
    "sluice.gateway.answer.duration",
    "sluice.gateway.in_flight",
    "sluice.rpc.in_flight",
}
HOPS = {"sluice-gateway", "sluice-retrieve", "sluice-assemble", "sluice-generate"}


def test_one_trace_covers_all_hops_and_no_telemetry_holds_text(
    examples: Running, collector: Collector
) -> None:
    reply = examples.ask(f"When is the production deploy window? {MARKER}")
    assert reply.status_code == 200

    def complete() -> bool:
        return any(services >= HOPS for services in collector.services_by_trace().values())

    assert wait_for(complete, 15), collector.services_by_trace()
    assert wait_for(lambda: collector.metric_names() >= METRICS, 15), collector.metric_names()
    assert "production deploy window" not in collector.text()
    assert MARKER not in collector.text()
    logs = "".join(path.read_text() for path in (examples.data / "logs").glob("*.log"))
    assert "trace_id" in logs
    assert MARKER not in logs
