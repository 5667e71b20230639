import asyncio
import threading

from chassis.deadlines import Deadline
from services.generate.attempt import MUCH, Attempts
from services.generate.audience import Audience
from services.generate.budget import Budget, Ledger
from services.generate.call import Call, Route
from services.generate.prompt import Prompt
from tests.generate.asking import TASK, Desk
from tests.scripted_provider import replies

LIMIT = 5.0  # seconds that a test waits for a thread


class Held:
    """A release that ends each check when the process's other work had its turn."""

    def __init__(self) -> None:
        self.began, self.may_end = asyncio.Event(), threading.Event()
        self._loop = asyncio.get_running_loop()

    def take(self, delta: str) -> str:
        self._loop.call_soon_threadsafe(self.began.set)
        return delta if self.may_end.wait(LIMIT) else ""


async def test_much_text_at_once_does_not_hold_up_other_work(desk: Desk) -> None:
    release, audience, text = Held(), Audience(), "x" * (MUCH + 1)
    desk.script(replies.answer(text, pieces=1))
    candidate, ledger = desk.candidate(), Ledger(Budget(1), Deadline.after(LIMIT * 2))
    call = Call(TASK, audience, ledger, Route([candidate]), desk.events.append)
    attempts = Attempts(lambda _: release)  # type: ignore[arg-type,return-value] # as a release
    async with asyncio.TaskGroup() as work:
        asked = work.create_task(attempts.ask(call, candidate, Prompt.of(TASK)))
        async with asyncio.timeout(LIMIT):
            await release.began.wait()
        release.may_end.set()
    assert asked.result().text == audience.shown == text
