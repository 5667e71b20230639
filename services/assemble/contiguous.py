"""Layout in which neighbouring blocks of a section become one source, in source order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce

from services.assemble import message
from services.assemble.admit import Count, Plan, Run
from services.assemble.candidate import Block, Candidate, Position

# More characters than this between two blocks hold more than fences, list marks and blank lines.
SEAM = 64


@dataclass(frozen=True, slots=True)
class Extent:
    """All that is needed to count a source.

    `middle` counts the blocks as if each stood between two others; only the first and the last
    stand otherwise.
    """

    rank: int
    lead: Candidate
    middle: int
    first: Block
    last: Block

    def joined(self, other: "Extent") -> "Extent":
        better = min(self, other, key=lambda each: each.rank)
        return Extent(
            rank=better.rank,
            lead=better.lead,
            middle=self.middle + other.middle,
            first=min(self.first, other.first, key=_place),
            last=max(self.last, other.last, key=_place),
        )


@dataclass(slots=True, eq=False)
class Strand(Run):
    """A run that can grow at both ends."""

    extent: Extent


class Contiguous:
    """Joins sources as blocks between them arrive; no block's text is counted twice."""

    def __init__(self, candidates: Iterable[Candidate], count: Count) -> None:
        self._neighbours = Neighbours(candidates)
        self._size = _Size(count)
        self._held: dict[Position, Strand] = {}
        self._strands: set[Strand] = set()
        self._admitted = 0

    @property
    def runs(self) -> list[Strand]:
        """The sources in order of their best candidate."""
        return sorted(self._strands, key=lambda strand: strand.extent.rank)

    def fresh(self, candidate: Candidate) -> list[Block]:
        return [block for block in candidate.blocks if block.at not in self._held]

    def plan(self, candidate: Candidate, fresh: Sequence[Block]) -> Plan:
        joined = self._joined(candidate)
        extent = self._extent(candidate, fresh, joined)
        return Plan(candidate, fresh, joined, self._size.body(extent))

    def commit(self, plan: Plan) -> None:
        joined = self._joined(plan.candidate)
        extent = self._extent(plan.candidate, plan.blocks, joined)
        own = Strand(extent.lead, [plan.candidate], list(plan.blocks), plan.tokens, extent)
        # The largest takes the others in, so that a block rarely changes hands.
        *others, grown = sorted([own, *joined], key=lambda strand: len(strand.blocks))
        self._held.update((block.at, grown) for block in own.blocks)
        for other in others:
            self._move(other, grown)
        grown.lead, grown.tokens, grown.extent = extent.lead, plan.tokens, extent
        self._strands.add(grown)
        self._admitted += 1

    def _joined(self, candidate: Candidate) -> list[Strand]:
        own = [block.at for block in candidate.blocks]
        near = [place for at in own for place in self._neighbours.of(at)]
        return list(dict.fromkeys(self._held[at] for at in [*own, *near] if at in self._held))

    def _extent(
        self, candidate: Candidate, fresh: Sequence[Block], joined: Sequence[Strand]
    ) -> Extent:
        middle = sum(self._size.middle(block) for block in fresh)
        own = Extent(self._admitted, candidate, middle, fresh[0], fresh[-1])
        return reduce(Extent.joined, (strand.extent for strand in joined), own)

    def _move(self, other: Strand, grown: Strand) -> None:
        self._strands.discard(other)
        self._held.update((block.at, grown) for block in other.blocks)
        grown.blocks += other.blocks
        grown.members += other.members


class Neighbours:
    """Which blocks follow each other in the source, as far as the candidates show it."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._blocks = {block.at: block for each in candidates for block in each.blocks}
        self._last: dict[Position, int] = {}
        for at in self._blocks:
            whole = at.moved(at.ordinal, 0)
            self._last[whole] = max(at.piece, self._last.get(whole, 0))

    def of(self, at: Position) -> Iterator[Position]:
        """Positions right before and right after a block."""
        yield at.moved(at.ordinal, at.piece + 1)
        if at.piece:
            yield at.moved(at.ordinal, at.piece - 1)
        else:
            yield from self._before(at)
        yield from self._after(at)

    def _before(self, at: Position) -> Iterator[Position]:
        earlier = at.moved(at.ordinal - 1, 0)
        last = earlier.moved(earlier.ordinal, self._last.get(earlier, 0))
        if self._adjoin(last, at):
            yield last

    def _after(self, at: Position) -> Iterator[Position]:
        following = at.moved(at.ordinal + 1, 0)
        if at.piece == self._last[at.moved(at.ordinal, 0)] and self._adjoin(at, following):
            yield following

    def _adjoin(self, first: Position, second: Position) -> bool:
        # A block in pieces may have a last piece that no candidate holds; the gap betrays it.
        before, after = self._blocks.get(first), self._blocks.get(second)
        return before is not None and after is not None and after.start - before.end <= SEAM


class _Size:
    """Tokens of the parts of a source's body."""

    def __init__(self, count: Count) -> None:
        self._count = cache(count)
        self._cut = cache(message.cut)

    def body(self, extent: Extent) -> int:
        told = self._count(message.description(extent.lead))
        return told + extent.middle + self._edges(extent.first, extent.last)

    def middle(self, block: Block) -> int:
        return self._block(block, first=False, last=False)

    def _edges(self, first: Block, last: Block) -> int:
        """What the first and the last block count more than between others."""
        if first is last:
            return self._block(first, first=True, last=True) - self.middle(first)
        begin = self._block(first, first=True, last=False) - self.middle(first)
        return begin + self._block(last, first=False, last=True) - self.middle(last)

    def _block(self, block: Block, *, first: bool, last: bool) -> int:
        pieces = message.block_pieces(self._cut(block.text), first=first, last=last)
        return sum(self._count(piece) for piece in pieces)


def _place(block: Block) -> Position:
    return block.at
