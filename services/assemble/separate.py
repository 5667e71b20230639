"""Layout in which every admitted candidate is a source of its own."""

from collections.abc import Sequence

from services.assemble import message
from services.assemble.admit import Count, Plan, Run
from services.assemble.candidate import Block, Candidate, Position


class Separate:
    """`whole` sends chunks as retrieved, else only blocks that no earlier source holds."""

    def __init__(self, count: Count, *, whole: bool) -> None:
        self.runs: list[Run] = []
        self._count = count
        self._whole = whole
        self._held: set[Position] = set()

    def fresh(self, candidate: Candidate) -> list[Block]:
        return [block for block in candidate.blocks if block.at not in self._held]

    def plan(self, candidate: Candidate, fresh: Sequence[Block]) -> Plan:
        blocks = candidate.blocks if self._whole else fresh
        text = message.BLOCK_BREAK.join(block.text for block in blocks)
        return Plan(candidate, blocks, (), self._count(message.body(candidate, text)))

    def commit(self, plan: Plan) -> None:
        self.runs.append(Run(plan.candidate, [plan.candidate], list(plan.blocks), plan.tokens))
        self._held.update(block.at for block in plan.blocks)
