import asyncio
from pathlib import Path

import pytest

from local import ports, redis
from local.readiness import redis_ready


def fake_server(folder: Path, name: str, says: str) -> Path:
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("says", "major"),
    [
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", 7),
        ("Valkey server v=8.1.2 sha=00000000:0 malloc=libc bits=64", 8),
        ("something else", 0),
    ],
)
def test_the_version_is_read_from_what_the_server_says(
    tmp_path: Path, says: str, major: int
) -> None:
    assert redis.major_version(fake_server(tmp_path, "redis-server", says)) == major


def test_a_new_enough_server_on_the_path_is_taken(tmp_path: Path) -> None:
    server = fake_server(tmp_path, "redis-server", "Redis server v=7.2.0 sha=0")
    assert redis.server_binary(str(tmp_path)) == server


def test_an_old_server_on_the_path_is_passed_over_for_the_wheels(tmp_path: Path) -> None:
    old = fake_server(tmp_path, "redis-server", "Redis server v=6.0.16 sha=0")
    found = redis.server_binary(str(tmp_path))
    assert found != old
    assert redis.major_version(found) >= redis.NEEDED


async def test_the_server_answers_on_loopback_and_keeps_its_data_in_the_folder(
    tmp_path: Path,
) -> None:
    port = ports.free(1)[0]
    command = redis.command(redis.server_binary(), port, tmp_path / "redis")
    probe = redis_ready(port)
    assert not await probe()
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    async with asyncio.timeout(20):
        while b"Ready to accept connections" not in (line := await server.stdout.readline()):
            assert line, "the server ended"
    assert await probe()
    server.terminate()
    await server.wait()
    assert (tmp_path / "redis" / "appendonlydir").is_dir()
