"""Qdrant's ordinary client: what the stage is measured beside, and how tests look from outside."""

from urllib.parse import urlsplit

from qdrant_client import AsyncQdrantClient


def client(url: str) -> AsyncQdrantClient:
    """To the gRPC endpoint at `url`, such as http://127.0.0.1:6334."""
    address = urlsplit(url)
    return AsyncQdrantClient(
        host=address.hostname,
        grpc_port=address.port or 0,
        prefer_grpc=True,
        check_compatibility=False,  # it would ask over HTTP, which the local node does not speak
    )
