"""The gold questions through every stage: what is answered, withheld and never invented."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from chassis import channels
from chassis.identity import AccessLevel, Caller, Minter, development_key
from sluice.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from tests.suite.conftest import CONTENT, Running

# The measured rates stand in the output; below these something broke.
TOP = 5
HIT_RATE = 0.9
ANSWERED_RATE = 0.75
CORRECT_RATE = 0.7

Gold = Mapping[str, Any]
Answer = Mapping[str, Any]
Figure = Callable[[str, object], None]


@pytest.fixture(scope="module")
def answers(examples: Running, gold: Gold) -> Mapping[str, Answer]:
    """The answer to each gold question, by id, asked as its asker."""
    return {case["id"]: _answer(examples, case) for case in gold["questions"]}


def _answer(suite: Running, case: Gold) -> Answer:
    reply = suite.ask(case["question"], case["asker"]["level"], case["asker"]["groups"])
    assert reply.status_code == 200, reply.text
    answer: Answer = reply.json()
    return answer


def of(gold: Gold, *categories: str) -> Iterator[Gold]:
    return (case for case in gold["questions"] if case["category"] in categories)


def test_what_is_above_the_askers_access_never_leaves(
    answers: Mapping[str, Answer], gold: Gold
) -> None:
    cases = list(of(gold, "above_access"))
    for case in cases:
        shown = str(answers[case["id"]])
        assert not [text for text in case["secret"] if text in shown]
        assert not [document for document in case["restricted"] if document in shown]
    assert len(cases) == 5


def test_unanswerable_questions_are_never_answered_with_invented_text(
    answers: Mapping[str, Answer], gold: Gold
) -> None:
    modes = {case["id"]: answers[case["id"]]["mode"] for case in of(gold, "unanswerable")}
    assert set(modes.values()) == {"ABSTAINED"}, modes


def test_answers_are_cited_verbatim_and_labelled(answers: Mapping[str, Answer], gold: Gold) -> None:
    answered = [answer for answer in answers.values() if answer["mode"] in CONTENT]
    assert answered
    for answer in answered:
        assert (answer["mode"], answer["reason"], answer["acceptance"]) == (
            "EXTRACTIVE",
            "NONE",
            "ACCEPTED",
        )
        included = {source["label"]: source["included_text"] for source in answer["sources"]}
        assert answer["citations"]
        for citation in answer["citations"]:
            quoted = answer["text"][citation["start"] : citation["end"]]
            sentence = quoted.removesuffix(f"[{citation['label']}]").strip()
            assert sentence in included[citation["label"]]


def test_most_answerable_questions_get_an_answer_from_the_right_document(
    answers: Mapping[str, Answer], gold: Gold, record_property: Figure
) -> None:
    cases = list(of(gold, "answerable", "two_passages", "paraphrased"))
    answered = [case for case in cases if answers[case["id"]]["mode"] in CONTENT]
    right = [case for case in answered if _cites_relevant(case, answers[case["id"]])]
    record_property("gold questions answered", len(answered) / len(cases))
    record_property("gold questions answered from the right document", len(right) / len(cases))
    assert len(answered) / len(cases) >= ANSWERED_RATE
    assert len(right) / len(cases) >= CORRECT_RATE


def _cites_relevant(case: Gold, answer: Answer) -> bool:
    relevant = {entry["document"] for entry in case["relevant"]}
    return bool(relevant & {source["document_id"] for source in answer["sources"]})


async def test_a_relevant_document_is_among_the_first_passages(
    examples: Running, gold: Gold, record_property: Figure
) -> None:
    cases = list(of(gold, "answerable", "two_passages", "paraphrased", "cross_language"))
    hits = [await _hit(examples, case) for case in cases]
    record_property(f"gold hit rate at {TOP}", sum(hits) / len(hits))
    assert sum(hits) / len(hits) >= HIT_RATE


async def _hit(suite: Running, case: Gold) -> bool:
    level, groups = AccessLevel.parse(case["asker"]["level"]), frozenset(case["asker"]["groups"])
    token = Minter(development_key()).mint(Caller("tester", "demo", level, groups), "retrieve")
    service = "sluice.retrieve.v1.RetrieveService"
    target = f"dns:///127.0.0.1:{suite.ports['retrieve']}"
    async with channels.connect(target, service=service, idempotent=True) as channel:
        stub = retrieve_pb2_grpc.RetrieveServiceStub(channel)
        request = retrieve_pb2.RetrieveRequest(question=case["question"], top_k=TOP)
        found = await channels.call(stub.Retrieve, request, stage="retrieve", token=token, limit=20)
    relevant = {entry["document"] for entry in case["relevant"]}
    return bool(relevant & {passage.document_id for passage in found.passages})
