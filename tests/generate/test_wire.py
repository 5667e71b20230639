"""What the sources' scores mean to generate, whatever space they were ranked in."""

import pytest

from capacity import Workload
from chassis.errors import InvalidInput
from services.generate import wire
from services.generate.evidence import Scores
from services.generate.task import Task
from sluice.evidence.v1 import evidence_pb2 as evidence
from sluice.generate.v1 import generate_pb2 as pb


def source(label: str, *cosines: float | None) -> evidence.Source:
    passages = [evidence.Passage(point_id="p", cosine=cosine) for cosine in cosines]
    return evidence.Source(label=label, score=0.5, passages=passages)


def task(space: evidence.ScoreSpace.ValueType, *sources: evidence.Source) -> Task:
    return wire.task(pb.GenerateRequest(score_space=space, sources=sources), "acme")


def test_a_cosine_is_the_score_itself() -> None:
    found = task(evidence.SCORE_SPACE_COSINE, source("S1", 0.9))
    assert (found.scores, found.sources[0].score) == (Scores.COSINE, 0.5)


def test_fused_sources_count_by_the_best_cosine_of_their_passages() -> None:
    found = task(evidence.SCORE_SPACE_MIN_MAX, source("S1", 0.8, 0.9), source("S2", None, 0.7))
    assert found.scores is Scores.COSINE
    assert [each.score for each in found.sources] == [0.9, 0.7]


def test_where_one_tells_no_cosine_no_score_is_taken_for_one() -> None:
    for space in (evidence.SCORE_SPACE_BM25, evidence.SCORE_SPACE_RRF):
        found = task(space, source("S1", 0.8), source("S2"))
        assert found.scores is Scores.OTHER
        assert [each.score for each in found.sources] == [0.5, 0.5]


def test_a_cosine_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        task(evidence.SCORE_SPACE_MIN_MAX, source("S1", float("nan")))
    assert refused.value.field == "sources[0].score"


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (evidence.WORKLOAD_UNSPECIFIED, Workload.INTERACTIVE),
        (evidence.WORKLOAD_INTERACTIVE, Workload.INTERACTIVE),
        (evidence.WORKLOAD_BATCH, Workload.BATCH),
    ],
)
def test_only_what_is_said_to_be_batch_work_is(
    told: evidence.Workload.ValueType, meant: Workload
) -> None:
    assert wire.task(pb.GenerateRequest(workload=told), "acme").workload is meant
