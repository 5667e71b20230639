"""Nothing of a model leaves unchecked: contract, marks, and what its sources carry.

A reply that breaks the contract is asked for once more, or of another candidate, or ends the
question, by policy. The budget of all attempts bounds that too.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Literal

from providers.chat import Completion
from services.generate import contract, probe
from services.generate.call import Call
from services.generate.cite import cited
from services.generate.contract import InvalidOutput
from services.generate.prompt import Prompt
from services.generate.result import Provenance, Result, Spent, Switch
from services.generate.retry import Retries
from services.generate.verdict import Abstained, AbstainedReason, Acceptance, Generated

CUT = "length"
OnInvalid = Literal["fail", "repair", "switch"]


@dataclass(frozen=True, slots=True)
class Validation:
    """A sentence that its sources carry by less than `floor`, 0 to 1, needs a review."""

    retries: Retries
    floor: float
    on_invalid: OnInvalid

    async def answer(self, call: Call) -> Result:
        """Raises what `Retries.ask` raises, and InvalidOutput."""
        prompt = Prompt.of(call.task)
        try:
            return await self._asked(call, prompt)
        except InvalidOutput as complaint:
            again = None if call.is_seen else self._again(call, prompt, complaint)
            if again is None:
                raise
        call.tell("repair:begin")
        result = await self._asked(call, again)
        repaired = replace(result.provenance, is_repaired=self.on_invalid == "repair")
        return replace(result, provenance=repaired)

    def _again(self, call: Call, prompt: Prompt, complaint: InvalidOutput) -> Prompt | None:
        """What to ask, by whom the route then says; None where nobody is to be asked again."""
        others = call.route.others()
        if self.on_invalid == "switch" and others:
            call.route.go(others[0], Switch.INVALID_OUTPUT)
        elif self.on_invalid == "repair":
            prompt = prompt.reminded(complaint)
        else:
            return None
        return prompt if call.ledger.allows(call.route.candidate.estimate(prompt)) else None

    async def _asked(self, call: Call, prompt: Prompt) -> Result:
        completion = await self.retries.ask(call, prompt)
        # Work of the processor, which must not hold up the process's other calls.
        return await asyncio.to_thread(self._checked, call, completion)

    def _checked(self, call: Call, completion: Completion) -> Result:
        if completion.finish_reason == CUT:
            raise InvalidOutput("cut off at the limit of its length")
        sources, candidate = call.task.sources, call.route.candidate
        answer = contract.read(completion.text, frozenset(source.label for source in sources))
        provenance = Provenance(
            candidate=candidate.endpoint.id,
            switch=call.route.switch,
            is_structured=candidate.schema is not None,
        )
        spent = Spent(model=completion.model)
        if not answer.is_sufficient:
            insufficient = Abstained(AbstainedReason.EVIDENCE_INSUFFICIENT)
            return Result(insufficient, spent=spent, provenance=provenance)
        found = cited(answer.text, sources)
        probe.support(candidate.endpoint.id, found.support)
        is_good = found.support >= self.floor and not candidate.needs_review(completion.model)
        verdict = Generated(Acceptance.ACCEPTED if is_good else Acceptance.REVIEW_REQUIRED)
        return Result(verdict, answer.text, found.citations, spent, provenance)
