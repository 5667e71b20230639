"""Gold sets are read strictly, and what is wrong is said with file, case and field."""

import json
from pathlib import Path

import pytest

from chassis.errors import InvalidInput
from evals import gold
from evals.case import Expected

EXAMPLES = Path(__file__).parents[2] / "examples" / "gold.yaml"
CASE = {
    "id": "one",
    "category": "plain",
    "question": "When?",
    "relevant": [{"document": "a.md", "grade": 2}],
}


def written(folder: Path, **changed: object) -> Path:
    path = folder / "gold.jsonl"
    path.write_text(json.dumps({**CASE, **changed}) + "\n")
    return path


def complaint(path: Path) -> str:
    with pytest.raises(InvalidInput) as refusal:
        gold.read(path)
    return refusal.value.message


def test_the_examples_are_a_gold_set_with_gates() -> None:
    read = gold.read(EXAMPLES)
    assert (read.name, len(read.cases), len(read.gates)) == ("gold", 40, 7)
    expected = {case.category: case.expected for case in read.cases}
    assert expected["paraphrased"] is Expected.ANSWERED
    assert expected["unanswerable"] is Expected.ABSTAINED
    assert expected["above_access"] is Expected.WITHHELD


def test_yaml_and_json_lines_say_the_same(tmp_path: Path) -> None:
    lines = written(tmp_path)
    told = tmp_path / "gold.yaml"
    told.write_text(json.dumps({"questions": [CASE]}))
    assert gold.read(lines).cases == gold.read(told).cases
    assert gold.read(lines).digest != gold.read(told).digest


def test_documents_to_be_cited_are_those_that_carry_the_answer(tmp_path: Path) -> None:
    judged = [{"document": "a", "grade": 2}, {"document": "b", "grade": 1}]
    judged.append({"document": "c", "grade": 0})
    case = gold.read(written(tmp_path, relevant=judged)).cases[0]
    assert case.cited == {"a"}
    assert case.bearing == {"a", "b"}
    told = gold.read(written(tmp_path, relevant=judged, documents=["b"])).cases[0]
    assert told.cited == {"b"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"relevant": [{"document": "a", "grade": 3}]}, "relevant[0].grade: Input should be less"),
        ({"relevant": [{"document": "a", "grade": -1}]}, "relevant[0].grade: Input should be gr"),
        ({"relevant": [{"document": "a", "grade": 1.0}]}, "relevant[0].grade: Input should be a v"),
        ({"relevant": [{"document": "a", "grade": True}]}, "relevant[0].grade: Input should be a"),
        ({"relevant": []}, "relevant: no document of grade 1 or 2"),
        ({"relevant": [{"document": "a", "grade": 0}]}, "relevant: no document of grade 1 or 2"),
        ({"relevant": [{"document": "a", "grade": 1}] * 2}, "relevant: one document or chunk is"),
        ({"relevant": [{"document": "a", "grade": 1, "chunk": 0}]}, "chunk and chunking_version"),
        ({"relevant": None, "outcome": "answered"}, "outcome: a question has judgments exactly"),
        ({"outcome": "abstained"}, "outcome: a question has judgments exactly"),
        ({"relevant": None, "outcome": "withheld"}, "outcome: name what is withheld"),
        ({"outcome": "maybe"}, "outcome: Input should be 'answered', 'abstained' or 'withheld'"),
        ({"asker": {"level": "secret"}}, "asker.level: Input should be 'public', 'team' or"),
        ({"asker": {"group": ["a"]}}, "asker.group: Extra inputs are not permitted"),
        ({"question": ""}, "question: String should have at least 1 character"),
        ({"answer": "Monday"}, "answer: Extra inputs are not permitted"),
    ],
)
def test_a_fault_is_named_with_file_case_and_field(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    path = written(tmp_path, **changed)
    assert complaint(path).startswith(f"{path}, case one: ")
    assert said in complaint(path)


def test_documents_and_chunks_are_not_judged_side_by_side(tmp_path: Path) -> None:
    chunk = {"document": "b", "chunk": 0, "chunking_version": "v1", "grade": 1}
    path = written(tmp_path, relevant=[{"document": "a", "grade": 1}, chunk])
    assert "judge documents, or chunks of one chunking version" in complaint(path)


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    rows = [{**CASE, "id": "a", "question": ""}, {"category": "x"}, {**CASE, "id": "c", "x": 1}]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    said = complaint(path)
    assert f"{path}, case a: question:" in said
    assert f"{path}, case number 2: id: Field required" in said
    assert f"{path}, case c: x:" in said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gold.yaml", "questions: []", "questions: there are none"),
        ("gold.yaml", "- 1", "Input should be a valid dictionary"),
        ("gold.yaml", "", "Input should be a valid dictionary"),
        ("gold.yaml", "questions: [", "line 1: "),
        ("gold.yaml", "[" * 20_000, "nested too deep"),
        ("gold.jsonl", "[" * 200_000, "line 1: not JSON"),
        ("gold.yaml", "demo: {}\ndemo: {}", "line 2: 'demo' stands twice"),
        ("gold.yaml", "questions: {}\nwhat: 1", "what: Extra inputs are not permitted"),
        ("gold.jsonl", '{"id": 1', "line 1: not JSON"),
        ("gold.jsonl", "3", "case number 1: Input should be a valid dictionary"),
        ("gold.jsonl", "", "questions: there are none"),
        ("gold.csv", "", "a gold set is .yaml, .jsonl or a folder"),
        ("none/gold.yaml", None, "cannot be read: No such file"),
    ],
)
def test_what_is_no_gold_set_is_an_input_error(
    tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    assert said in complaint(path)
    assert str(path) in complaint(path)


def test_two_cases_of_one_id_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(f"{json.dumps(CASE)}\n\n{json.dumps(CASE)}\n")
    assert complaint(path) == f"{path}: id: more than one case is one"


@pytest.mark.parametrize("bounds", ["{}", "{at_least: 1, at_most: 2}", "{may_fall: -1}"])
def test_a_gate_has_exactly_one_bound(tmp_path: Path, bounds: str) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text(f"gates: [{{metric: answers.leaks, {bounds[1:-1]}}}]")
    with pytest.raises(InvalidInput, match=r"gates\[0\]"):
        gold.read_gates(path)


def test_gates_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "gates.yaml"
    path.write_text("gates: [{metric: answers.leaks, at_most: 0}]")
    assert [gate.rule for gate in gold.read_gates(path)] == [("at_most", 0)]
