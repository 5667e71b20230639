"""Labels are held against the source before anything is scored."""

from dataclasses import replace
from pathlib import Path

import pytest

from chassis.errors import InvalidInput
from evals import corpus
from evals.case import Case
from evals.gold import Gold
from tests.evals.cases import DOCUMENTS, case, unanswerable

FINANCE = {"level": "public", "groups": ["finance"]}


def checked(*cases: Case) -> None:
    corpus.check(Gold("gold", Path("gold.yaml"), "digest", cases), DOCUMENTS)


def test_labels_of_the_corpus_pass() -> None:
    checked(
        case(),
        case(id="two", asker=FINANCE, relevant=[{"document": "groups.md", "grade": 2}]),
        unanswerable(),
        unanswerable(id="hidden", restricted=["secret.md", "draft.md", "groups.md"]),
    )
    assert corpus.hidden(["a.md", "b.md"], case(), DOCUMENTS) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"relevant": [{"document": "z.md", "grade": 1}]}, "relevant[0]: z.md is not in the corp"),
        ({"relevant": [{"document": "secret.md", "grade": 1}]}, "the asker may not read secret.md"),
        ({"relevant": [{"document": "draft.md", "grade": 1}]}, "the asker may not read draft.md"),
        ({"relevant": [{"document": "groups.md", "grade": 1}]}, "the asker may not read groups.md"),
        (
            {"relevant": [{"document": "a.md", "grade": 1, "chunk": 3, "chunking_version": "v"}]},
            "relevant[0]: a.md has no chunk 3",
        ),
        ({"documents": ["z.md"]}, "documents[0]: z.md is not in the corpus for the asker"),
        ({"restricted": ["z.md"]}, "restricted[0]: z.md is not in the corpus"),
        ({"restricted": ["a.md"]}, "restricted[0]: the asker may read a.md"),
    ],
)
def test_a_label_that_is_wrong_fails_the_run(changed: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        checked(case(**changed))
    assert refusal.value.message.startswith("gold.yaml, case one: ")
    assert said in refusal.value.message
    assert refusal.value.reason == "LABEL_NOT_IN_CORPUS"


def test_of_many_wrong_labels_the_first_are_told_and_the_rest_counted() -> None:
    judged = [{"document": f"{number}.md", "grade": 1} for number in range(25)]
    with pytest.raises(InvalidInput, match="and 5 more"):
        checked(case(relevant=judged))


def test_judged_chunks_belong_to_the_version_that_was_searched() -> None:
    judged = [{"document": "a.md", "grade": 1, "chunk": 0, "chunking_version": "v1"}]
    corpus.check_version(case(relevant=judged), "v1")
    with pytest.raises(InvalidInput, match="judges chunks of 'v1', but the corpus is in chunks"):
        corpus.check_version(case(relevant=judged), "v2")


def test_what_the_asker_may_not_read_is_a_leak_whatever_the_case_says() -> None:
    shown = ["a.md", "secret.md", "groups.md", "draft.md", "secret.md", "unknown.md"]
    assert corpus.hidden(shown, case(), DOCUMENTS) == ["secret.md", "groups.md", "draft.md"]


def test_the_revision_moves_with_any_documents_content_and_not_with_their_order() -> None:
    documents = list(DOCUMENTS.values())
    edited = [replace(documents[0], content="other"), *documents[1:]]
    assert corpus.revision(documents) == corpus.revision(documents[::-1])
    assert corpus.revision(documents) != corpus.revision(edited)
    assert corpus.revision(documents) != corpus.revision(documents[1:])
