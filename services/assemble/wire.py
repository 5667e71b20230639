"""The contract's messages as the domain's nouns, and back. What can never work is refused here."""

import math
import re

from chassis.errors import InvalidInput
from services.assemble.admit import Decision
from services.assemble.assembly import Assembly, Injection, Outcome, Selection, Source
from services.assemble.budget import Budget
from services.assemble.candidate import Block, Candidate, Position
from sluice.assemble.v1 import assemble_pb2 as pb
from sluice.evidence.v1.evidence_pb2 import Block as WireBlock
from sluice.evidence.v1.evidence_pb2 import Passage
from sluice.evidence.v1.evidence_pb2 import Source as WireSource

QUESTION_CHARACTERS = 4_000
CANDIDATES = 5_000
# The tokenizer gives up on a run of a million blanks; real texts are far below this.
TEXT_CHARACTERS = 100_000

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

_SELECTIONS = {
    pb.SELECTION_POLICY_UNSPECIFIED: Selection.UNIQUE,
    pb.SELECTION_POLICY_UNIQUE: Selection.UNIQUE,
    pb.SELECTION_POLICY_CONTIGUOUS: Selection.CONTIGUOUS,
    pb.SELECTION_POLICY_WHOLE: Selection.WHOLE,
}
_INJECTIONS = {
    pb.INJECTION_POLICY_UNSPECIFIED: Injection.DROP,
    pb.INJECTION_POLICY_DROP: Injection.DROP,
    pb.INJECTION_POLICY_FLAG: Injection.FLAG,
}
_DECISIONS = {
    Decision.ADMITTED: pb.DECISION_ADMITTED,
    Decision.DUPLICATE: pb.DECISION_DUPLICATE,
    Decision.OVER_BUDGET: pb.DECISION_OVER_BUDGET,
    Decision.SUSPECTED_INJECTION: pb.DECISION_SUSPECTED_INJECTION,
    Decision.BELOW_RANK: pb.DECISION_BELOW_RANK,
}


def question(request: pb.AssembleRequest) -> str:
    if not request.question.strip():
        raise InvalidInput("the question is empty", field="question")
    if len(request.question) > QUESTION_CHARACTERS:
        raise InvalidInput(
            f"the question has more than {QUESTION_CHARACTERS} characters", field="question"
        )
    if _CONTROL.search(request.question):
        raise InvalidInput("the question holds a control character", field="question")
    return request.question


def budget(request: pb.AssembleRequest, default: Budget) -> Budget:
    if not request.HasField("budget"):
        return default
    asked = request.budget
    return Budget(asked.context_limit, asked.output_reserve, asked.framing_reserve)


def selection(request: pb.AssembleRequest) -> Selection:
    if request.selection not in _SELECTIONS:
        raise InvalidInput("unknown selection policy", field="selection")
    return _SELECTIONS[request.selection]


def injection(request: pb.AssembleRequest) -> Injection:
    if request.injection not in _INJECTIONS:
        raise InvalidInput("unknown injection policy", field="injection")
    return _INJECTIONS[request.injection]


def candidates(request: pb.AssembleRequest) -> tuple[Candidate, ...]:
    if len(request.candidates) > CANDIDATES:
        raise InvalidInput(f"more than {CANDIDATES} candidates", field="candidates")
    return tuple(_candidate(i, passage) for i, passage in enumerate(request.candidates))


def _candidate(index: int, passage: Passage) -> Candidate:
    where = f"candidates[{index}]"
    if not passage.document_id:
        raise InvalidInput("the document id is empty", field=f"{where}.document_id")
    if not passage.blocks:
        raise InvalidInput("there are no blocks", field=f"{where}.blocks")
    if not math.isfinite(passage.score):
        raise InvalidInput("the score is not a finite number", field=f"{where}.score")
    blocks = {block.at: block for block in (_block(where, passage, b) for b in passage.blocks)}
    return Candidate(
        index=index,
        point=passage.point_id,
        document=passage.document_id,
        revision=passage.revision,
        chunking=passage.chunking_version,
        chunk=passage.chunk,
        title=_text(passage.title, f"{where}.title"),
        version=_text(passage.version, f"{where}.version"),
        headings=tuple(_text(part, f"{where}.heading_path") for part in passage.heading_path),
        blocks=tuple(sorted(blocks.values(), key=lambda block: block.at)),
        score=passage.score,
        marked=passage.suspected_injection,
    )


def _block(where: str, passage: Passage, block: WireBlock) -> Block:
    at = Position(
        passage.document_id, passage.revision, passage.section_id, block.ordinal, block.piece
    )
    text = f"{block.context}\n{block.text}" if block.context else block.text
    return Block(at, _text(text, f"{where}.blocks"), block.start, block.end)


def _text(text: str, field: str) -> str:
    if len(text) > TEXT_CHARACTERS:
        raise InvalidInput(f"more than {TEXT_CHARACTERS} characters in one text", field=field)
    return text


def response(request: pb.AssembleRequest, assembly: Assembly) -> pb.AssembleResponse:
    """The parts of the response that follow from the assembly."""
    roles = [(pb.ROLE_SYSTEM, assembly.system), (pb.ROLE_USER, assembly.user)]
    return pb.AssembleResponse(
        messages=[pb.Message(role=r, content=c) for r, c in roles if assembly.sources],
        sources=[_source(request, source) for source in assembly.sources],
        decisions=[_decision(outcome) for outcome in assembly.outcomes],
        input_tokens=assembly.tokens,
    )


def _source(request: pb.AssembleRequest, source: Source) -> WireSource:
    lead = request.candidates[source.lead.index]
    passages = [request.candidates[member.index] for member in source.members]
    blocks = {(b.ordinal, b.piece): b for passage in passages for b in passage.blocks}
    return WireSource(
        label=source.label,
        document_id=lead.document_id,
        revision=lead.revision,
        title=lead.title,
        version=lead.version,
        section_id=lead.section_id,
        heading_path=lead.heading_path,
        included_text=source.text,
        blocks=[blocks[block.at.ordinal, block.at.piece] for block in source.blocks],
        passages=passages,
        score=lead.score,
        uri=lead.uri,
        access_level=max(passage.access_level for passage in passages),
        suspected_injection=source.suspected,
    )


def _decision(outcome: Outcome) -> pb.CandidateDecision:
    return pb.CandidateDecision(
        point_id=outcome.candidate.point,
        decision=_DECISIONS[outcome.verdict.decision],
        label=outcome.label,
        tokens=outcome.verdict.tokens,
    )
