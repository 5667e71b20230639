import asyncio
import threading
from collections.abc import Callable

import pytest

from local.models.line import Line, LineFull


class Gate:
    """Work that waits for its permission and remembers the order in which it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.begun = threading.Semaphore(0)
        self.permits = threading.Semaphore(0)

    def work(self, item: str) -> str:
        self.ran.append(item)
        self.begun.release()
        assert self.permits.acquire(timeout=10)
        return item.upper()

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=10)


async def queued(line: Line, work: Callable[[str], str], *items: str) -> asyncio.Task[list[str]]:
    task = asyncio.create_task(line.run(work, items))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def test_a_single_text_passes_a_batch_that_has_begun() -> None:
    line, gate = Line(8), Gate()
    batch = await queued(line, gate.work, "a1", "a2", "a3")
    await gate.has_begun()
    single = await queued(line, gate.work, "query")
    gate.permits.release(4)
    assert await single == ["QUERY"]
    assert await batch == ["A1", "A2", "A3"]
    assert gate.ran == ["a1", "query", "a2", "a3"]


async def test_batches_take_turns_and_newcomers_cannot_starve_them() -> None:
    line, gate = Line(8), Gate()
    tasks = [await queued(line, gate.work, "a1", "a2", "a3")]
    await gate.has_begun()
    tasks += [await queued(line, gate.work, name, f"{name}2") for name in ("b", "c", "d")]
    gate.permits.release(9)
    await asyncio.gather(*tasks)
    assert gate.ran == ["a1", "b", "a2", "c", "b2", "d", "a3", "c2", "d2"]


async def test_a_request_that_is_given_up_takes_no_further_turn() -> None:
    line, gate = Line(1), Gate()
    batch = await queued(line, gate.work, "a1", "a2", "a3")
    await gate.has_begun()
    batch.cancel()
    await asyncio.gather(batch, return_exceptions=True)
    following = await queued(line, gate.work, "b")
    gate.permits.release(2)
    assert await following == ["B"]
    assert gate.ran == ["a1", "b"]


async def test_a_waiting_request_that_is_given_up_passes_its_turn_on() -> None:
    line, gate = Line(8), Gate()
    first = await queued(line, gate.work, "a")
    await gate.has_begun()
    second = await queued(line, gate.work, "b")
    third = await queued(line, gate.work, "c")
    second.cancel()
    gate.permits.release(2)
    assert (await first, await third) == (["A"], ["C"])
    assert gate.ran == ["a", "c"]


async def test_one_request_too_many_is_told_when_to_come_again() -> None:
    line, gate = Line(1), Gate()
    running = await queued(line, gate.work, "a")
    await gate.has_begun()
    with pytest.raises(LineFull) as refusal:
        await line.run(gate.work, ["b"])
    gate.permits.release()
    await running
    assert refusal.value.retry_after >= 1
    assert gate.ran == ["a"]


async def test_work_that_fails_frees_its_place() -> None:
    line = Line(1)
    with pytest.raises(ZeroDivisionError):
        await line.run(lambda number: 1 // number, [0])
    assert await line.run(lambda number: 1 // number, [1]) == [1]
