import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc.aio import AioRpcError
from grpc_health.v1 import health_pb2, health_pb2_grpc
from qdrant_client import AsyncQdrantClient, models
from qdrant_client import grpc as wire

from local.qdrant_node.database import Database
from tests.local.qdrant_node.conftest import Node, Start

EXIT_SECONDS = 30.0

VECTORS = {"dense": models.VectorParams(size=4, distance=models.Distance.COSINE)}
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING

WRITER = """
import sys
from qdrant_client import QdrantClient, models
client = QdrantClient(
    url=f"http://127.0.0.1:{sys.argv[1]}", grpc_port=int(sys.argv[1]), prefer_grpc=True,
    check_compatibility=False,
)
print("ready", flush=True)
for number in range(1_000, 1_100):
    client.upsert(
        sys.argv[2], [models.PointStruct(id=number, vector={"dense": [1, 2, 3, 4]})]
    )
print(client.count(sys.argv[2]).count)
client.close()
"""


def point(number: int) -> models.PointStruct:
    return models.PointStruct(
        id=number, vector={"dense": [1, number, 0, 0]}, payload={"tenant": "a", "number": number}
    )


async def test_killed_and_stopped_nodes_come_back_with_all_that_was_acknowledged(
    start: Start, tmp_path: Path
) -> None:
    killed = start(tmp_path)
    killed.wait_until_ready()
    acknowledged = await _write_until_killed(killed)

    second = start(tmp_path)
    second.wait_until_ready()
    client = second.client()
    stored = {record.id for record in (await client.scroll("live", limit=100_000))[0]}
    info = await client.get_collection("kept")
    assert len(acknowledged) >= 100
    assert acknowledged <= stored
    assert len(stored) <= len(acknowledged) + 1
    assert info.config.metadata == {"profile": "p"}
    assert info.payload_schema["tenant"].points == len(stored)
    assert not await client.collection_exists("dropped")
    await client.set_payload("kept", {"number": -1}, [0])
    await client.delete_payload_index("kept", "tenant")
    await client.close()

    await _stop(second)

    reopened = Database(tmp_path)
    collection = reopened.collection("live")
    assert collection.engine.info().points_count == len(stored)
    assert collection.engine.retrieve([0], with_payload=True, with_vector=False)[0].payload == {
        "tenant": "a",
        "number": -1,
    }
    assert not collection.entry.indexes
    reopened.close()


async def _write_until_killed(node: Node) -> set[int]:
    client = node.client()
    for name in ("kept", "dropped"):
        await client.create_collection(name, VECTORS, metadata={"profile": "p"})
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    await client.create_payload_index("kept", "tenant", tenant)
    alias = models.CreateAlias(collection_name="kept", alias_name="live")
    await client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    await client.delete_collection("dropped")
    acknowledged: set[int] = set()
    enough = asyncio.Event()

    async def write() -> None:
        for number in range(100_000):
            await client.upsert("live", [point(number)])
            acknowledged.add(number)
            if number == 150:
                enough.set()

    writing = asyncio.create_task(write())
    await asyncio.wait_for(enough.wait(), EXIT_SECONDS)
    node.process.kill()
    with pytest.raises(AioRpcError):
        await writing
    node.process.wait(EXIT_SECONDS)
    await client.close()
    return acknowledged


async def _stop(node: Node) -> None:
    """End a node as a supervisor does: it says that it drains, exits with 0 and logs two lines."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{node.port}") as channel:
        request = health_pb2.HealthCheckRequest(service="readiness")
        watched = health_pb2_grpc.HealthStub(channel).Watch(request)
        statuses = [(await watched.read()).status]
        node.process.send_signal(signal.SIGTERM)
        statuses.append((await watched.read()).status)
        watched.cancel()
    _, log = node.process.communicate(timeout=EXIT_SECONDS)
    started, stopped = (json.loads(line) for line in log.splitlines())
    assert statuses == [SERVING, NOT_SERVING]
    assert node.process.returncode == 0
    assert (started["event"], stopped["event"]) == ("started", "stopped")
    assert (started["port"], started["data"]) == (node.port, str(node.folder))


async def test_a_second_node_is_refused_with_a_reason(
    node: Node, start: Start, tmp_path: Path
) -> None:
    refused = {
        f"data folder {node.folder} is in use by another Qdrant node": start(node.folder),
        f"port {node.port} on 127.0.0.1 is in use": start(tmp_path, node.port),
    }

    for words, second in refused.items():
        _, log = second.process.communicate(timeout=EXIT_SECONDS)
        assert second.process.returncode == 1
        assert words in log
        assert "Traceback" not in log


async def test_clients_of_two_processes_write_and_read_at_once(
    node: Node, client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(name, VECTORS)
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(node.port), name, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    async with asyncio.timeout(EXIT_SECONDS):
        assert await other.stdout.readline() == b"ready\n"
        for number in range(100):
            await client.upsert(name, [point(number)])
        output, _ = await other.communicate()

    assert 100 <= int(output) <= 200
    assert (await client.count(name)).count == 200


async def test_health_is_served_for_the_process_and_its_parts(node: Node) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{node.port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "liveness", "readiness"):
            reply = await health.Check(health_pb2.HealthCheckRequest(service=service))
            assert reply.status == SERVING
        qdrant: Any = wire.QdrantStub
        assert (await qdrant(channel).HealthCheck(wire.HealthCheckRequest())).title == "Qdrant Edge"


async def test_a_message_above_grpcs_default_passes_and_one_above_64_mib_is_refused(
    client: AsyncQdrantClient, name: str
) -> None:
    await client.create_collection(name, VECTORS)

    def large(mebibytes: int) -> list[models.PointStruct]:
        return [models.PointStruct(id=1, vector={}, payload={"text": "x" * mebibytes * 2**20})]

    await client.upsert(name, large(20))
    records, _ = await client.scroll(name)
    with pytest.raises(AioRpcError) as refused:
        await client.upsert(name, large(65))

    assert records[0].payload == large(20)[0].payload
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
