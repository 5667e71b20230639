"""Where a stream begins and ends, told; that it ended does not mean that it went well."""

from dataclasses import dataclass

from services.generate.call import Call, Step
from services.generate.result import Result


@dataclass(frozen=True, slots=True)
class Streamed:
    inner: Step

    async def answer(self, call: Call) -> Result:
        call.tell("stream-begin")
        try:
            return await self.inner.answer(call)
        finally:
            call.tell("stream-end")
