"""What is given where no model could answer: never an ungrounded answer, and never unlabelled."""

from dataclasses import dataclass, replace

from chassis.errors import SluiceError
from services.generate import failure as failures
from services.generate.cached import Earlier
from services.generate.call import Call
from services.generate.extraction import Extraction
from services.generate.result import Provenance, Result
from services.generate.verdict import (
    Extractive,
    ExtractiveReason,
    Previous,
    PreviousReason,
    Unavailable,
    UnavailableReason,
)


@dataclass(frozen=True, slots=True)
class Instead:
    """An earlier answer, else a quotation, else plainly none; None where policy has no such thing.

    A refusal stays one: nobody is to get around it by asking while the model is down.
    """

    earlier: Earlier | None
    extraction: Extraction | None

    async def answer(self, call: Call, failure: SluiceError) -> Result:
        failures.tell(failure)
        if call.audience is not None:
            call.audience.withdraw(failures.withdrawal_of(failure))
        reason = failures.reason_of(failure)
        found = await self._previous(call, reason) or await self._quoted(call, reason)
        return found or Result(Unavailable(reason))

    async def _previous(self, call: Call, reason: UnavailableReason) -> Result | None:
        if self.earlier is None or reason.name not in PreviousReason.__members__:
            return None
        stored = await self.earlier.find(call)
        if stored is None:
            return None
        verdict = Previous(PreviousReason[reason.name], stored.acceptance, stored.age)
        return replace(stored.result, verdict=verdict)

    async def _quoted(self, call: Call, reason: UnavailableReason) -> Result | None:
        if self.extraction is None or reason.name not in ExtractiveReason.__members__:
            return None
        result = await self.extraction.answer(call.task)
        if not isinstance(result.verdict, Extractive):
            return None
        verdict = Extractive(ExtractiveReason[reason.name])
        return replace(result, verdict=verdict, provenance=Provenance())
