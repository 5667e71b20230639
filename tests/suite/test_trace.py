"""One trace from the door to the last stage."""

from tests.suite.collector import Collector
from tests.suite.conftest import Running, wait_for

METRICS = {
    "rpc.server.call.duration",
    "sluice.capacity.granted",
    "sluice.capacity.left",
    "sluice.gateway.answer.duration",
    "sluice.gateway.in_flight",
    "sluice.rpc.in_flight",
}
HOPS = {"sluice-gateway", "sluice-retrieve", "sluice-assemble", "sluice-generate"}


def test_one_trace_covers_all_hops_and_logs_name_it(
    examples: Running, collector: Collector
) -> None:
    reply = examples.ask("When is the production deploy window?")
    assert reply.status_code == 200

    def complete() -> bool:
        return any(services >= HOPS for services in collector.services_by_trace().values())

    assert wait_for(complete, 15), collector.services_by_trace()
    assert wait_for(lambda: collector.metric_names() >= METRICS, 15), collector.metric_names()
    logs = "".join(path.read_text() for path in (examples.data / "logs").glob("*.log"))
    assert "trace_id" in logs
