import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chassis.settings import EXIT_BAD_SETTINGS
from local.child import MISMATCH
from local.failures import GaveUp, LocalFailure, NotReady, Refused
from local.supervisor import Policy, State, Supervisor
from tests.local.parts import DEAF, SILENT, Told, part

READY, DIED, RESTARTING, STOPPED = State.READY, State.DIED, State.RESTARTING, State.STOPPED
EAGER = Policy(grace=5, restarts=2, window=60, first_pause=0.01)


@asynccontextmanager
async def watched(supervisor: Supervisor) -> AsyncIterator[None]:
    await supervisor.start()
    watching = asyncio.create_task(supervisor.watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await supervisor.stop()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_parts_become_ready_tier_by_tier_and_end_in_reverse(tmp_path: Path) -> None:
    told = Told()
    supervisor = Supervisor([[part("store")], [part("stage")]], tmp_path, told, EAGER)
    await supervisor.start()
    pids = supervisor.pids
    await supervisor.stop()
    assert [(event.name, event.state) for event in told.events] == [
        ("store", READY),
        ("stage", READY),
        ("stage", STOPPED),
        ("store", STOPPED),
    ]
    assert not any(alive(pid) for pid in pids.values())


async def test_a_killed_part_is_restarted_loudly_while_the_others_run_on(tmp_path: Path) -> None:
    told = Told()
    supervisor = Supervisor([[part("store"), part("stage")]], tmp_path, told, EAGER)
    async with watched(supervisor):
        before = dict(supervisor.pids)
        os.kill(before["stage"], signal.SIGKILL)
        await told.until("stage", READY, DIED, RESTARTING, READY)
        after = supervisor.pids
    assert told.states("store") == [READY, STOPPED]
    assert (after["store"], after["stage"] != before["stage"]) == (before["store"], True)
    (death,) = told.details(DIED)
    assert death.startswith("killed by SIGKILL, its last line: stage listens")
    assert told.details(RESTARTING) == ["restart 1 of at most 2"]


async def test_a_part_that_keeps_dying_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    told = Told()
    supervisor = Supervisor([[part("stage", answers=1)]], tmp_path, told, EAGER)
    await supervisor.start()
    with pytest.raises(GaveUp) as failure:
        await supervisor.watch()
    await supervisor.stop()
    assert "stage died again after 2 restarts within 60 s" in failure.value.message
    assert "ended with exit code 7, its last line: worn_out answers=1" in failure.value.message
    assert told.states("stage").count(RESTARTING) == 2


@pytest.mark.parametrize(("code", "kind"), [(1, NotReady), (EXIT_BAD_SETTINGS, Refused)])
async def test_a_part_that_ends_while_starting_ends_the_start(
    tmp_path: Path, code: int, kind: type[LocalFailure]
) -> None:
    told = Told()
    broken = part("broken", program=f"print('no such option'); raise SystemExit({code})")
    supervisor = Supervisor([[part("store")], [broken]], tmp_path, told, EAGER)
    with pytest.raises(kind) as failure:
        await supervisor.start()
    assert failure.value.message.startswith(
        f"broken: ended with exit code {code}, its last line: no such option (log: "
    )
    assert told.states("store") == [READY, STOPPED]


async def test_a_part_that_is_never_ready_is_named_with_the_limit(tmp_path: Path) -> None:
    slow = part("slow", program=SILENT, ready_within=0.5)
    supervisor = Supervisor([[slow]], tmp_path, Told(), EAGER)
    with pytest.raises(NotReady, match=r"slow: not ready within 0\.5 s, its last line: thinking"):
        await supervisor.start()
    assert not alive(supervisor.pids["slow"])


async def test_a_part_whose_index_is_anothers_is_named_without_waiting(tmp_path: Path) -> None:
    said = {
        "event": "dependency_down",
        "problem": "the collection's size is 3, expected 4",
        "reason": MISMATCH,
    }
    program = f"import time; print({json.dumps(said)!r}, flush=True); time.sleep(60)"
    supervisor = Supervisor([[part("stage", program=program)]], tmp_path, Told(), EAGER)
    with pytest.raises(Refused) as failure:
        await supervisor.start()
    assert failure.value.message.startswith("stage: the collection's size is 3, expected 4 (log: ")
    # What an earlier process said of its index is not about this one.
    mended = Supervisor([[part("stage")]], tmp_path, Told(), EAGER)
    await mended.start()
    await mended.stop()
    assert not alive(mended.pids["stage"])


async def test_a_part_that_ignores_the_request_to_end_is_killed_after_the_grace(
    tmp_path: Path,
) -> None:
    deaf = part("deaf", program=DEAF)
    supervisor = Supervisor([[deaf]], tmp_path, Told(), Policy(grace=0.2))
    await supervisor.start()
    await supervisor.stop()
    assert not alive(supervisor.pids["deaf"])


async def test_logs_go_to_a_file_a_part(tmp_path: Path) -> None:
    supervisor = Supervisor([[part("store"), part("stage")]], tmp_path, Told(), EAGER)
    await supervisor.start()
    await supervisor.stop()
    assert (tmp_path / "store.log").read_text().startswith("store listens")
    assert (tmp_path / "stage.log").read_text().startswith("stage listens")
