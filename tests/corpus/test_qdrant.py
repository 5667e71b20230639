"""The connection at a server that notes what came, and the messages without the client."""

import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import grpc
import pytest

from chassis.errors import Exhausted, Unavailable
from corpus import collection, epochs
from corpus.failures import translated
from corpus.qdrant import CALL_SECONDS, wire

Metadata = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Noting(wire.PointsServicer):
    """Has no point; notes the key and the seconds that each call brings, or refuses it for load."""

    seen: list[tuple[str, float | None]] = field(default_factory=list)
    trailing: Metadata | None = None

    async def Get(  # noqa: N802 - gRPC's name
        self,
        request: wire.GetPoints,
        context: "grpc.aio.ServicerContext[wire.GetPoints, wire.GetResponse]",
    ) -> wire.GetResponse:
        brought = dict(context.invocation_metadata() or ())
        self.seen.append((str(brought.get("api-key", "")), context.time_remaining()))
        if self.trailing is not None:
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many", trailing_metadata=self.trailing
            )
        return wire.GetResponse()


@pytest.fixture
async def served() -> AsyncIterator[tuple[Noting, int]]:
    noting, server = Noting(), grpc.aio.server()
    wire.add_PointsServicer_to_server(noting, server)  # type: ignore[no-untyped-call] # generated
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield noting, port
    await server.stop(None)


@pytest.mark.parametrize("key", ["", "secret"])
async def test_every_call_brings_the_key_and_a_deadline(
    served: tuple[Noting, int], key: str
) -> None:
    noting, port = served
    qdrant = collection.connect(f"http://127.0.0.1:{port}", key)
    await qdrant.points.Get(wire.GetPoints())
    await qdrant.points.Get(wire.GetPoints(), timeout=1)
    await qdrant.close()
    (first, most), (second, least) = noting.seen
    assert (first, second) == (key, key)
    assert most is not None
    assert least is not None
    assert least < 2 < most < CALL_SECONDS + 1


async def test_behind_https_nobody_is_spoken_to_without_a_certificate(
    served: tuple[Noting, int],
) -> None:
    noting, port = served
    qdrant = collection.connect(f"https://127.0.0.1:{port}", "secret")
    with pytest.raises(Unavailable):
        await epochs.read(qdrant, "sluice", "acme", 5)
    await qdrant.close()
    assert noting.seen == []


@pytest.mark.parametrize(
    ("trailing", "seconds"),
    [((("retry-after", "7"),), 7), ((("retry-after", "soon"),), None), ((), None)],
)
async def test_who_refuses_for_load_may_say_when_to_come_again(
    served: tuple[Noting, int], trailing: Metadata, seconds: float | None
) -> None:
    noting, port = served
    noting.trailing = trailing
    qdrant = collection.connect(f"http://127.0.0.1:{port}")
    with pytest.raises(Exhausted) as refusal:
        async with translated(5):
            await qdrant.points.Get(wire.GetPoints())
    await qdrant.close()
    assert (refusal.value.reason, refusal.value.retry_after) == ("INDEX_EXHAUSTED", seconds)


def imported(*lines: str) -> set[str]:
    """Modules of Qdrant's package that a fresh interpreter has after these lines."""
    said = "print(*(name for name in sys.modules if name.split('.')[0] == 'qdrant_client'))"
    code = "\n".join(["import sys", *lines, said])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "services.ingest.__main__",
        "services.ingest.index",
        "services.retrieve.__main__",
        "services.retrieve.index",
        "cli.doctor.parts",
        "local.qdrant_node.__main__",
    ],
)
def test_no_process_loads_more_of_qdrants_package_than_its_messages(module: str) -> None:
    loaded = imported(f"import {module}")
    assert {name for name in loaded if not f"{name}.".startswith("qdrant_client.grpc.")} == set()


def test_who_wants_the_whole_client_gets_it_before_and_after() -> None:
    whole = "from qdrant_client import AsyncQdrantClient, grpc"
    for first, second in [(whole, "import corpus.qdrant"), ("import corpus.qdrant", whole)]:
        loaded = imported(first, second, "assert grpc is corpus.qdrant.wire")
        assert "qdrant_client.async_qdrant_client" in loaded
