"""One call to one candidate, reserved, counted, and read as it comes."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from providers.chat import Completion, Reply
from services.generate import probe
from services.generate.budget import Estimate, Used
from services.generate.call import Call
from services.generate.candidate import Candidate
from services.generate.evidence import Source
from services.generate.prompt import Prompt
from services.generate.release import Release

# Characters of a reply that may wait to be shown before they are checked in a thread: what a model
# writes in one paragraph takes milliseconds, but a provider may send a whole book at once.
MUCH = 2_000

MakeRelease = Callable[[Sequence[Source]], Release]


@dataclass(frozen=True, slots=True)
class Attempts:
    """`release` decides what of a reply may be shown before its end."""

    release: MakeRelease

    async def ask(self, call: Call, candidate: Candidate, prompt: Prompt) -> Completion:
        """The candidate's whole reply, shown to an audience as far as it may be.

        Raises what the chat client and its reply raise, and InvalidOutput where the reply can no
        longer keep the contract. What an attempt spent is in the ledger however it ends.
        """
        estimate = candidate.estimate(prompt)
        with probe.attempt(call.tell, candidate.endpoint.id) as begin:

            def begins() -> None:
                call.ledger.begin(estimate)
                begin()

            async with candidate.chat.stream(
                prompt.messages,
                input_tokens=prompt.tokens,
                workload=call.task.workload,
                schema=candidate.schema,
                begins=begins,
            ) as reply:
                try:
                    await self._read(call, reply)
                    return reply.completion()
                finally:
                    _enter(call, candidate, estimate, reply)

    async def _read(self, call: Call, reply: Reply) -> None:
        if call.audience is None:
            async for _ in reply:
                pass
            return
        release, waiting = self.release(call.task.sources), 0
        async for delta in reply:
            waiting += len(delta)
            if waiting > MUCH:
                # Work of the processor, which must not hold up the process's other calls.
                shown = await asyncio.to_thread(release.take, delta)
            else:
                shown = release.take(delta)
            waiting = 0 if shown else waiting
            await call.audience.show(shown)


def _enter(call: Call, candidate: Candidate, estimate: Estimate, reply: Reply) -> None:
    call.ledger.model = reply.model
    if reply.usage is None:
        return
    read, charged = reply.usage.prompt_tokens, reply.usage.charged
    cost = candidate.cost(read, charged - read)
    used = Used(read, reply.usage.completion_tokens, charged, cost)
    call.ledger.report(estimate, used)
