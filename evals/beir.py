"""Folders of retrieval benchmarks: corpus.jsonl, queries.jsonl and qrels.tsv.

The layout is that of BEIR (Thakur and others: BEIR: A Heterogenous Benchmark for Zero-shot
Evaluation of Information Retrieval Models, 2021).
"""

import csv
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, Field

from chassis.errors import InvalidInput
from evals.case import Fields
from evals.gold import Gold, GoldFile, check_cases, content_of, rows, validated

CORPUS, QUERIES, JUDGMENTS = FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
HEADER = ["query-id", "corpus-id", "score"]


class _Row(Fields):
    # Benchmarks carry fields of their own, which mean nothing here.
    model_config = ConfigDict(extra="ignore")

    id: str = Field(alias="_id", min_length=1)
    text: str


class _Entry(_Row):
    title: str = ""


class _Queries(Fields):
    questions: list[_Row]


class _Entries(Fields):
    questions: list[_Entry]


@dataclass(frozen=True, slots=True)
class Text:
    """One text of the corpus, as the Markdown document that ingest takes."""

    document: str
    content: bytes


def is_folder(path: Path) -> bool:
    """Whether the path is such a folder."""
    return all((path / name).is_file() for name in FILES)


def read(folder: Path) -> Gold:
    """The questions that have judgments, in the order of the queries.

    Raises InvalidInput that names file and line, or file, case and field.
    """
    contents = [content_of(folder / name) for name in FILES]
    path = folder / QUERIES
    judged = _judgments(contents[2], folder / JUDGMENTS)
    queries = validated(_Queries, {"questions": rows(contents[1], path)}, path).questions
    told = [_case(query, judged.pop(query.id)) for query in queries if query.id in judged]
    if judged:
        raise InvalidInput(
            f"{folder / JUDGMENTS}: query-id: {next(iter(judged))} is no query", field="query-id"
        )
    cases = validated(GoldFile, {"questions": told}, folder / JUDGMENTS).questions
    check_cases(cases, path)
    digest = hashlib.sha256(b"\0".join(contents)).hexdigest()
    return Gold(folder.resolve().name, folder, digest, cases)


def texts(folder: Path) -> Iterator[Text]:
    """The corpus, a document a text: its title as the heading, its text below."""
    path = folder / CORPUS
    entries = validated(_Entries, {"questions": rows(content_of(path), path)}, path).questions
    for entry in entries:
        head = f"# {' '.join(entry.title.split())}\n\n" if entry.title.strip() else ""
        yield Text(_document(entry.id), f"{head}{entry.text}\n".encode())


def _document(identity: str) -> str:
    return f"{identity}.md"


def _case(query: _Row, judged: dict[str, int]) -> dict[str, object]:
    relevant = [{"document": _document(name), "grade": grade} for name, grade in judged.items()]
    return {"id": query.id, "category": "query", "question": query.text, "relevant": relevant}


def _judgments(content: bytes, path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    lines = csv.reader(io.StringIO(content.decode(errors="replace")), delimiter="\t")
    for number, line in enumerate(lines, start=1):
        if number == 1 and line == HEADER:
            continue
        if len(line) != len(HEADER) or not line[2].strip().isdigit():
            raise InvalidInput(
                f"{path}, line {number}: score: expected query-id, corpus-id and a whole number",
                field="score",
            )
        query, document, grade = line
        if document in found.setdefault(query, {}):
            raise InvalidInput(
                f"{path}, line {number}, case {query}: corpus-id: {document} is judged twice",
                field="corpus-id",
            )
        found[query][document] = int(grade)
    return found
