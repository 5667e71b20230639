"""Passages of one question against its judgments."""

import pytest

from chassis.errors import InvalidInput
from evals import retrieval
from tests.evals.cases import DOCUMENTS, case, found, unanswerable

CHUNKS = [
    {"document": "a.md", "grade": 2, "chunk": 1, "chunking_version": "v1"},
    {"document": "a.md", "grade": 1, "chunk": 2, "chunking_version": "v1"},
]


def test_chunks_of_a_document_count_once_at_its_best_rank() -> None:
    passages = found(("b.md", 0), ("b.md", 1), ("a.md", 0), ("b.md", 2))
    scored = retrieval.score(case(), passages, DOCUMENTS)
    assert scored.ranked == ["b.md", "a.md"]
    assert scored.measures["recall@1"] == pytest.approx(1 / 2)
    assert scored.measures["precision@3"] == pytest.approx(2 / 3)
    assert (scored.best, scored.fitting) == (1, 1)


def test_judged_chunks_are_ranked_as_chunks() -> None:
    passages = found(("a.md", 0), ("a.md", 1))
    scored = retrieval.score(case(relevant=CHUNKS), passages, DOCUMENTS)
    assert scored.ranked == ["a.md#0", "a.md#1"]
    assert scored.measures["rr@3"] == pytest.approx(1 / 2)
    assert scored.measures["recall@10"] == pytest.approx(1 / 2)


def test_nothing_found_is_a_miss_and_no_error() -> None:
    scored = retrieval.score(case(complete=True), found(), DOCUMENTS)
    assert set(scored.measures.values()) == {0}
    assert (scored.best, scored.fitting) == (None, None)


def test_without_judgments_there_is_no_measure() -> None:
    scored = retrieval.score(unanswerable(), found(("a.md", 0)), DOCUMENTS)
    assert scored.measures == {}
    assert (scored.best, scored.fitting) == (1, None)


def test_a_passage_that_comes_twice_fails_the_run_with_its_case() -> None:
    with pytest.raises(InvalidInput, match=r"case one: \('a.md', 0\) was returned twice"):
        retrieval.score(case(), found(("a.md", 0), ("a.md", 0)), DOCUMENTS)


def test_an_unjudged_result_of_complete_judgments_fails_the_run() -> None:
    with pytest.raises(InvalidInput, match=r"case one: 'c\.md' was returned and is not judged"):
        retrieval.score(case(complete=True), found(("c.md", 0)), DOCUMENTS)


def test_chunks_of_another_version_fail_the_run() -> None:
    other = found(("a.md", 0), chunking_version="v2")
    with pytest.raises(InvalidInput, match="case one: relevant: judges chunks of 'v1'"):
        retrieval.score(case(relevant=CHUNKS), other, DOCUMENTS)


def test_what_is_hidden_from_the_asker_leaks_by_document_and_by_word() -> None:
    hidden = unanswerable(restricted=["secret.md"], secret=["text of b"])
    scored = retrieval.score(hidden, found(("secret.md", 0), ("b.md", 0)), DOCUMENTS)
    assert scored.leaks == ["secret.md", "text of b"]


def test_documents_are_looked_for_deeper_than_chunks() -> None:
    assert retrieval.depth(case()) > retrieval.depth(case(relevant=CHUNKS)) == max(retrieval.KS)
