"""The example corpus and its gold questions agree with each other."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

EXAMPLES = Path(__file__).parents[2] / "examples"
CORPUS = EXAMPLES / "corpus"
LEVELS = ("public", "team", "restricted")
ALLOWED = {
    "access": set(LEVELS),
    "document_type": {"runbook", "policy", "decision", "faq", "handbook", "review"},
    "publication_state": {"draft", "published"},
}
TEXT_FIELDS = ("title", "version", "area", "uri")
CATEGORIES = {
    "answerable": 14,
    "two_passages": 5,
    "paraphrased": 6,
    "cross_language": 5,
    "unanswerable": 5,
    "above_access": 5,
}
ALWAYS = {"id", "category", "question", "asker"}
KEYS = dict.fromkeys(CATEGORIES, ALWAYS | {"relevant", "expect"}) | {
    "unanswerable": ALWAYS,
    "above_access": ALWAYS | {"restricted", "secret"},
}

Question = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    front: dict[str, Any]
    body: str


def read(path: Path) -> Document:
    opening, front, body = path.read_text(encoding="utf-8").split("---\n", maxsplit=2)
    if opening:
        raise ValueError(f"{path} does not begin with front matter")
    return Document(yaml.safe_load(front), body)


DOCUMENTS = {p.relative_to(CORPUS).as_posix(): read(p) for p in sorted(CORPUS.rglob("*.md"))}
GOLD = yaml.safe_load((EXAMPLES / "gold.yaml").read_text(encoding="utf-8"))
QUESTIONS: dict[str, Question] = {question["id"]: question for question in GOLD["questions"]}
ANSWERED = {name: question for name, question in QUESTIONS.items() if "relevant" in question}
ABOVE_ACCESS = {name: question for name, question in QUESTIONS.items() if "secret" in question}


def may_read(asker: dict[str, Any], document: Document) -> bool:
    """A document's groups narrow its access level; they never widen it."""
    front = document.front
    return (
        front["publication_state"] == "published"
        and LEVELS.index(front["access"]) <= LEVELS.index(asker["level"])
        and (not front["groups"] or not set(front["groups"]).isdisjoint(asker["groups"]))
    )


def test_the_corpus_covers_every_level_state_type_and_language() -> None:
    fronts = [document.front for document in DOCUMENTS.values()]
    for field, values in ALLOWED.items():
        assert {front[field] for front in fronts} == values
    assert sum(front["publication_state"] == "draft" for front in fronts) == 3
    assert {group for front in fronts for group in front["groups"]} == {"finance", "security"}
    folders = Counter(name.split("/")[0] for name in DOCUMENTS)
    assert folders["pt"] == 3
    assert folders["de"] == 3
    assert 28 <= len(DOCUMENTS) <= 36


def test_every_markdown_file_is_named_so_that_ingest_reads_it() -> None:
    odd = [
        name for name in DOCUMENTS if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", Path(name).stem)
    ]
    assert odd == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_front_matter_holds_exactly_the_known_fields_with_allowed_values(name: str) -> None:
    front = DOCUMENTS[name].front
    assert set(front) == {*TEXT_FIELDS, *ALLOWED, "groups"}
    for field, values in ALLOWED.items():
        assert front[field] in values
    for field in TEXT_FIELDS:
        assert isinstance(front[field], str)
        assert front[field]
    assert isinstance(front["groups"], list)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_neither_a_note_nor_a_book(name: str) -> None:
    assert 150 <= len(DOCUMENTS[name].body.split()) <= 900


def test_uris_and_titles_tell_documents_apart() -> None:
    for field in ("uri", "title"):
        values = Counter(document.front[field] for document in DOCUMENTS.values())
        assert [value for value, count in values.items() if count > 1] == []


def test_the_failover_warning_stands_before_both_procedures() -> None:
    body = DOCUMENTS["runbooks/database-failover.md"].body
    warnings = [line for line in body.splitlines() if line.startswith("**Warning:")]
    assert len(warnings) == 2
    assert len(set(warnings)) == 1


def test_the_injection_example_is_quoted_in_the_awareness_page_only() -> None:
    holders = [
        name
        for name, document in DOCUMENTS.items()
        if "ignore all previous instructions" in document.body.lower()
    ]
    assert holders == ["handbook/security-awareness.md"]


def test_there_are_forty_questions_with_unique_ids_and_wordings() -> None:
    assert len(GOLD["questions"]) == len(QUESTIONS) == 40
    assert len({question["question"] for question in GOLD["questions"]}) == 40
    assert Counter(question["category"] for question in GOLD["questions"]) == CATEGORIES


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_the_fields_of_its_category(name: str) -> None:
    question = QUESTIONS[name]
    assert set(question) == KEYS[question["category"]]
    assert all(question.values())
    assert set(question["asker"]) == {"level", "groups"}
    assert question["asker"]["level"] in LEVELS
    assert isinstance(question["asker"]["groups"], list)


@pytest.mark.parametrize("name", ANSWERED)
def test_relevant_documents_exist_and_the_asker_may_read_them(name: str) -> None:
    question = ANSWERED[name]
    judged = {entry["document"]: entry["grade"] for entry in question["relevant"]}
    assert len(judged) == len(question["relevant"])
    assert set(judged.values()) <= {1, 2}
    assert 2 in judged.values()
    assert all(may_read(question["asker"], DOCUMENTS[document]) for document in judged)


@pytest.mark.parametrize("name", ANSWERED)
def test_expected_strings_and_carrying_documents_belong_to_each_other(name: str) -> None:
    question = ANSWERED[name]
    bodies = [
        DOCUMENTS[entry["document"]].body for entry in question["relevant"] if entry["grade"] == 2
    ]
    for expected in question["expect"]:
        assert any(expected in body for body in bodies)
    for body in bodies:
        assert any(expected in body for expected in question["expect"])


@pytest.mark.parametrize(
    "name", [name for name in ANSWERED if ANSWERED[name]["category"] == "two_passages"]
)
def test_no_single_paragraph_answers_a_two_passage_question(name: str) -> None:
    question = ANSWERED[name]
    paragraphs = [
        paragraph
        for entry in question["relevant"]
        for paragraph in DOCUMENTS[entry["document"]].body.split("\n\n")
    ]
    assert len(question["expect"]) == 2
    assert not any(
        all(expected in paragraph for expected in question["expect"]) for paragraph in paragraphs
    )


@pytest.mark.parametrize("name", ABOVE_ACCESS)
def test_secrets_stand_only_in_documents_the_asker_may_not_read(name: str) -> None:
    question = ABOVE_ACCESS[name]
    for secret in question["secret"]:
        holders = {
            document for document in DOCUMENTS if secret.lower() in DOCUMENTS[document].body.lower()
        }
        assert holders
        assert holders <= set(question["restricted"])
    for document in question["restricted"]:
        assert not may_read(question["asker"], DOCUMENTS[document])


@pytest.mark.parametrize("name", ABOVE_ACCESS)
def test_somebody_with_the_rights_may_read_what_others_are_refused(name: str) -> None:
    entitled = {"level": "restricted", "groups": ["finance", "security"]}
    assert all(may_read(entitled, DOCUMENTS[name]) for name in ABOVE_ACCESS[name]["restricted"])


def test_the_demo_shows_one_covered_one_out_of_scope_and_one_restricted_question() -> None:
    demo = GOLD["demo"]
    assert set(demo) == {"covered", "out_of_scope", "restricted"}
    assert QUESTIONS[demo["covered"]]["category"] == "answerable"
    assert QUESTIONS[demo["out_of_scope"]]["category"] == "unanswerable"
    refused = QUESTIONS[demo["restricted"]]
    assert refused["asker"] == {"level": "team", "groups": []}
    entitled = {"level": "restricted", "groups": []}
    assert all(may_read(entitled, DOCUMENTS[document]) for document in refused["restricted"])
