"""A real node process on a free port, and unmodified Qdrant clients for it."""

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from qdrant_client import AsyncQdrantClient, QdrantClient

from tests.stages import START_SECONDS


@dataclass(frozen=True)
class Node:
    port: int
    folder: Path
    process: subprocess.Popen[str]

    def client(self) -> AsyncQdrantClient:
        return AsyncQdrantClient(
            url=f"http://127.0.0.1:{self.port}",
            grpc_port=self.port,
            prefer_grpc=True,
            check_compatibility=False,
        )

    def blocking_client(self) -> QdrantClient:
        return QdrantClient(
            url=f"http://127.0.0.1:{self.port}",
            grpc_port=self.port,
            prefer_grpc=True,
            check_compatibility=False,
        )

    def wait_until_ready(self) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            reply = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service="readiness"),
                timeout=START_SECONDS,
                wait_for_ready=True,
            )
            assert reply.status == health_pb2.HealthCheckResponse.SERVING

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


Start = Callable[..., Node]


def spawn(folder: Path, port: int | None = None) -> Node:
    if port is None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "local.qdrant_node"],
        env={**os.environ, "SLUICE_QDRANT_DATA": str(folder), "SLUICE_QDRANT_PORT": str(port)},
        stderr=subprocess.PIPE,
        text=True,
    )
    return Node(port, folder, process)


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts nodes that end with the test; it does not wait for them."""
    nodes: list[Node] = []

    def start_node(folder: Path, port: int | None = None) -> Node:
        nodes.append(spawn(folder, port))
        return nodes[-1]

    yield start_node
    for node in nodes:
        node.end()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all tests that need no process of their own."""
    shared = spawn(tmp_path_factory.mktemp("qdrant"))
    shared.wait_until_ready()
    yield shared
    shared.end()


@pytest.fixture
async def client(node: Node) -> AsyncIterator[AsyncQdrantClient]:
    unmodified = node.client()
    yield unmodified
    await unmodified.close()


@pytest.fixture
def name() -> str:
    """A collection's name that no other test uses."""
    return f"collection-{uuid.uuid4().hex}"
