import asyncio
import os
import select
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from local import ports, state
from local.failures import Refused
from tests.local import parts

PROGRAM = Path(parts.__file__)


@asynccontextmanager
async def running(folder: Path, numbers: list[int]) -> AsyncIterator[Process]:
    """A suite of two tiny parts, in a process of its own, ready."""
    arguments = (str(folder), *(str(number) for number in numbers))
    suite = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, *arguments, stdout=PIPE)
    try:
        assert suite.stdout is not None
        async with asyncio.timeout(20):
            assert await suite.stdout.readline() == b"ready\n"
        yield suite
    finally:
        if suite.returncode is None:
            suite.kill()
        await suite.wait()


def ended(descriptors: list[int]) -> bool:
    """Whether every process ends within ten seconds."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    left = set(descriptors)
    while left:
        gone = poll.poll(10_000)
        if not gone:
            return False
        for descriptor, _ in gone:
            poll.unregister(descriptor)
            left.discard(descriptor)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="the tether needs Linux")
async def test_no_process_outlives_a_suite_that_is_killed(tmp_path: Path) -> None:
    async with running(tmp_path, ports.free(2)) as suite:
        left = state.read(tmp_path)
        assert left is not None
        descriptors = [os.pidfd_open(part.pid) for part in left.parts]
        suite.kill()
        await suite.wait()
    assert len(descriptors) == 2
    assert await asyncio.to_thread(ended, descriptors)
    assert state.read(tmp_path) is None
    for descriptor in descriptors:
        os.close(descriptor)


async def test_a_part_that_stands_back_does_so_among_those_of_the_same_session(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, ports.free(2)):
        left = state.read(tmp_path)
        assert left is not None
        pids = {part.name: part.pid for part in left.parts}
        nice = {name: os.getpriority(os.PRIO_PROCESS, pid) for name, pid in pids.items()}
        sessions = {os.getsid(pid) for pid in pids.values()}
        groups = {os.getpgid(pid) for pid in pids.values()}
    assert nice["models"] - nice["gateway"] == 3
    assert sessions == {os.getsid(0)}
    assert len(groups | {os.getpgid(0)}) == 3


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_everything_with_exit_code_0(
    tmp_path: Path, name: signal.Signals
) -> None:
    numbers = ports.free(2)
    async with running(tmp_path, numbers) as suite:
        suite.send_signal(name)
        async with asyncio.timeout(10):
            assert await suite.wait() == 0
    ports.check({"models": numbers[0], "gateway": numbers[1]})
    assert not (tmp_path / state.STATE).exists()


async def test_a_second_suite_on_the_folder_is_refused_and_told_of_the_first(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, ports.free(2)) as suite:
        with pytest.raises(Refused) as refusal:
            async with parts.run(tmp_path, *ports.free(2)):
                pass
        assert f"a suite already runs on {tmp_path} (process {suite.pid}, " in str(refusal.value)


async def test_a_port_in_use_stops_the_start_before_anything_runs(tmp_path: Path) -> None:
    first, second = ports.free(2)
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", second)
    async with server:
        suite = parts.run(tmp_path, first, second)
        with pytest.raises(Refused, match=f"port {second} for gateway is in use.*GATEWAY_PORT"):
            async with suite:
                pass
    assert suite.pids == {}


def test_a_program_holds_a_suite_in_a_with_block(tmp_path: Path) -> None:
    with parts.run(tmp_path, *ports.free(2)) as suite:
        assert httpx.get(suite.url).status_code == 200
        left = state.read(tmp_path)
        assert left is not None
        assert {part.name: part.pid for part in left.parts} == dict(suite.pids)
        assert (left.pid, left.url) == (os.getpid(), suite.url)
    with pytest.raises(httpx.ConnectError):
        httpx.get(suite.url)


def test_a_suite_that_could_not_start_leaves_its_folder_free(tmp_path: Path) -> None:
    taken = ports.free(1)[0]
    with pytest.raises(Refused, match="is set for models and gateway"):
        parts.run(tmp_path, taken, taken).__enter__()
    with parts.run(tmp_path, *ports.free(2)) as suite:
        assert len(suite.pids) == 2


def test_the_logs_of_the_run_before_are_kept_once(tmp_path: Path) -> None:
    for _ in range(2):
        with parts.run(tmp_path, *ports.free(2)):
            pass
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert names == ["gateway.log", "gateway.log.1", "models.log", "models.log.1"]
