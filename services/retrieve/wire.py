"""The contract's messages as the domain's nouns, and back. What can never work is refused here."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from google.protobuf.duration_pb2 import Duration

from capacity import Workload
from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from corpus.points import Kind, State, StoredBlock, StoredPassage
from corpus.suspicion import suspected_injection
from services.retrieve.filters import Filters
from services.retrieve.fuse import Space
from services.retrieve.guard import Found
from services.retrieve.search import Mode, Result, Wanted
from services.retrieve.standing import Evidence, Standing
from sluice.evidence.v1 import evidence_pb2 as evidence
from sluice.retrieve.v1 import retrieve_pb2 as pb

LARGEST_TOP_K = 100
FILTER_VALUES = 1_000
REMEMBERED = 1_024  # texts of passages

_MODES = {
    pb.SEARCH_MODE_DENSE: Mode.DENSE,
    pb.SEARCH_MODE_SPARSE: Mode.SPARSE,
    pb.SEARCH_MODE_FUSED: Mode.FUSED,
}
_WORKLOADS = {evidence.WORKLOAD_BATCH: Workload.BATCH}
_SPACES = {
    Space.COSINE: evidence.SCORE_SPACE_COSINE,
    Space.BM25: evidence.SCORE_SPACE_BM25,
    Space.RRF: evidence.SCORE_SPACE_RRF,
    Space.MIN_MAX: evidence.SCORE_SPACE_MIN_MAX,
}
_STATES = {
    evidence.PUBLICATION_STATE_DRAFT: State.DRAFT,
    evidence.PUBLICATION_STATE_PUBLISHED: State.PUBLISHED,
}
_STATE_NUMBERS = {state: number for number, state in _STATES.items()}
_LEVEL_NUMBERS = {
    AccessLevel.PUBLIC: evidence.ACCESS_LEVEL_PUBLIC,
    AccessLevel.TEAM: evidence.ACCESS_LEVEL_TEAM,
    AccessLevel.RESTRICTED: evidence.ACCESS_LEVEL_RESTRICTED,
}
_KINDS = {
    Kind.PARAGRAPH: evidence.BLOCK_KIND_PARAGRAPH,
    Kind.LIST: evidence.BLOCK_KIND_LIST,
    Kind.TABLE: evidence.BLOCK_KIND_TABLE,
    Kind.CODE: evidence.BLOCK_KIND_CODE,
}


@dataclass(frozen=True, slots=True)
class Defaults:
    """What is done where a request says nothing."""

    top_k: int
    mode: Mode
    diversity: float


def wanted(request: pb.RetrieveRequest, defaults: Defaults) -> Wanted:
    """Raises InvalidInput that names the field."""
    if request.top_k > LARGEST_TOP_K:
        raise InvalidInput(f"top_k is above {LARGEST_TOP_K}", field="top_k")
    diversity = request.diversity if request.HasField("diversity") else defaults.diversity
    if not 0 <= diversity <= 1:
        raise InvalidInput("diversity is not from 0 to 1", field="diversity")
    asked = request.filters
    return Wanted(
        question=request.question,
        filters=Filters(
            document_types=_values("document_types", asked.document_types),
            document_ids=_values("document_ids", asked.document_ids),
            areas=_values("areas", asked.areas),
        ),
        states=_states("filters.publication_states", asked.publication_states),
        top_k=request.top_k or defaults.top_k,
        mode=_mode(request.mode, defaults.mode),
        diversity=diversity,
        workload=_WORKLOADS.get(request.workload, Workload.INTERACTIVE),
    )


def response(result: Result, profile: str) -> pb.RetrieveResponse:
    return pb.RetrieveResponse(
        passages=[_passage(found) for found in result.passages],
        score_space=_SPACES[result.space],
        counts=pb.RetrieveCounts(
            candidates=result.candidates,
            passed_threshold=result.passed,
            returned=len(result.passages),
        ),
        timings=pb.RetrieveTimings(
            embedding=_duration(result.embedding_seconds), search=_duration(result.search_seconds)
        ),
        epoch=result.epoch,
        embedding_profile=profile,
        chunking_version=result.chunking_version,
    )


def evidence_of(request: pb.CheckPassagesRequest) -> Evidence:
    """Raises InvalidInput that names the field."""
    return Evidence(
        epoch=request.epoch,
        point_ids=tuple(request.point_ids),
        states=_states("publication_states", request.publication_states),
    )


def standing(found: Standing) -> pb.CheckPassagesResponse:
    return pb.CheckPassagesResponse(gone=found.gone, epoch=found.epoch)


def _mode(number: pb.SearchMode.ValueType, default: Mode) -> Mode:
    if number == pb.SEARCH_MODE_UNSPECIFIED:
        return default
    if number not in _MODES:
        raise InvalidInput("unknown search mode", field="mode")
    return _MODES[number]


def _values(name: str, values: Sequence[str]) -> tuple[str, ...]:
    if len(values) > FILTER_VALUES:
        raise InvalidInput(f"more than {FILTER_VALUES} values", field=f"filters.{name}")
    return tuple(values)


def _states(
    field: str, numbers: Collection[evidence.PublicationState.ValueType]
) -> tuple[State, ...]:
    if not _STATES.keys() >= set(numbers):
        raise InvalidInput("unknown publication state", field=field)
    return tuple(_STATES[number] for number in numbers)


def _passage(found: Found) -> evidence.Passage:
    passage = found.passage
    return evidence.Passage(
        point_id=found.id,
        document_id=passage.document_id,
        revision=passage.revision,
        chunking_version=passage.chunking_version,
        chunk=passage.chunk,
        title=passage.title,
        version=passage.version,
        section_id=passage.section_id,
        heading_path=passage.heading_path,
        blocks=[_block(block) for block in passage.blocks],
        access_level=_LEVEL_NUMBERS[passage.access],
        groups=passage.groups,
        document_type=passage.document_type,
        area=passage.area,
        publication_state=_STATE_NUMBERS[passage.state],
        uri=passage.uri,
        score=found.score,
        cosine=found.cosine,
        suspected_injection=_suspected(_readable(passage)),
    )


# What is found once is found again: a text never changes, and its judgment costs a tenth of a call.
_suspected = lru_cache(maxsize=REMEMBERED)(suspected_injection)


def _readable(passage: StoredPassage) -> str:
    return "\n".join([passage.title, *passage.heading_path, passage.text])


def _block(block: StoredBlock) -> evidence.Block:
    return evidence.Block(
        ordinal=block.ordinal,
        piece=block.piece,
        kind=_KINDS[block.kind],
        start=block.start,
        end=block.end,
        text=block.text,
        context=block.context,
    )


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=seconds))
    return duration
