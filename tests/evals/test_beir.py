"""Folders of retrieval benchmarks."""

from pathlib import Path

import pytest

from chassis.errors import InvalidInput
from evals import beir

CORPUS = """\
{"_id": "d1", "title": "Buoys  and\\nlights", "text": "A buoy marks the channel.", "url": "x"}
{"_id": "d2", "title": "", "text": "A tide table tells when."}
"""
QUERIES = """\
{"_id": "q1", "text": "What marks the channel?", "metadata": {}}
{"_id": "q2", "text": "Who asked this?"}
{"_id": "q3", "text": "When is high water?"}
"""
QRELS = "query-id\tcorpus-id\tscore\nq3\td2\t2\nq1\td1\t1\nq1\td2\t0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in zip(beir.FILES, (CORPUS, QUERIES, QRELS), strict=True):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_judged_queries_become_cases_in_their_order(folder: Path) -> None:
    read = beir.read(folder)
    assert read.name == folder.name
    assert [case.id for case in read.cases] == ["q1", "q3"]
    assert read.cases[0].grades == {"d1.md": 1, "d2.md": 0}


def test_texts_become_documents_that_the_judgments_name(folder: Path) -> None:
    texts = list(beir.texts(folder))
    assert [text.document for text in texts] == ["d1.md", "d2.md"]
    assert texts[0].content == b"# Buoys and lights\n\nA buoy marks the channel.\n"
    assert texts[1].content == b"A tide table tells when.\n"


def test_a_folder_without_one_of_the_files_is_none(folder: Path) -> None:
    assert beir.is_folder(folder)
    (folder / "qrels.tsv").unlink()
    assert not beir.is_folder(folder)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("qrels.tsv", "q1\td1\t1\nq1\td1\t2\n", "line 2, case q1: corpus-id: d1 is judged twice"),
        ("qrels.tsv", "q1\td1\n", "line 1: score: expected query-id, corpus-id and a whole number"),
        ("qrels.tsv", "q1\td1\t1\nq1\td2\t-1\n", "line 2: score: expected"),
        ("qrels.tsv", "q1\td1\t3\n", "case q1: relevant[0].grade: Input should be less"),
        ("qrels.tsv", "q1\td1\t0\n", "case q1: relevant: no document of grade 1 or 2"),
        ("qrels.tsv", "q9\td1\t1\n", "query-id: q9 is no query"),
        ("qrels.tsv", "", "questions: there are none"),
        ("queries.jsonl", "{}", "case number 1: _id: Field required"),
        ("queries.jsonl", "nothing", "line 1: not JSON"),
    ],
)
def test_a_fault_is_named_with_file_and_place(
    folder: Path, name: str, text: str, said: str
) -> None:
    (folder / name).write_text(text)
    with pytest.raises(InvalidInput) as refusal:
        beir.read(folder)
    assert said in refusal.value.message
    assert str(folder) in refusal.value.message
