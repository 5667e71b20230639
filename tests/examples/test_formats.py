"""The example documents of other formats become passages as a reader would expect."""

from pathlib import Path

import pytest

from chassis.identity import AccessLevel
from corpus.points import Kind
from services.ingest.document import Document
from services.ingest.prepare import Header, read

FORMATS = Path(__file__).parents[2] / "examples" / "formats"


def example(name: str) -> Document:
    return read(Header(name, "examples"), (FORMATS / name).read_bytes(), AccessLevel.TEAM)


@pytest.mark.parametrize(
    ("name", "title", "headings", "table"),
    [
        (
            "tide-gauge.html",
            "Tide gauge at Skarholm",
            ["What the levels mean", "When it reports nothing"],
            "| above 2.8 m | red |",
        ),
        (
            "mooring.pdf",
            "Mooring a ship",
            ["Order of the lines", "Wind above 14 metres a second", "After a line has parted"],
            "| stern line | 45 m | 62 kN |",
        ),
        (
            "lifejackets.docx",
            "Life jackets on board",
            ["Where they are", "Yearly inspection"],
            "| Car deck | 60 | 6 |",
        ),
    ],
)
def test_headings_tables_and_titles_survive(
    name: str, title: str, headings: list[str], table: str
) -> None:
    found = example(name)
    assert found.metadata.title == title
    assert {section.path[-1] for section in found.sections} >= set(headings)
    blocks = [block for section in found.sections for block in section.blocks]
    (shown,) = (found.text[b.start : b.end] for b in blocks if b.kind is Kind.TABLE)
    assert table in shown


def test_only_what_the_page_shows_and_says_is_kept() -> None:
    found = example("tide-gauge.html")
    assert (found.metadata.access, found.metadata.area) == (AccessLevel.PUBLIC, "terminals")
    for unseen in ("All gauges", "old gauge", "console", "float"):
        assert unseen not in found.text
    assert "```sh" in found.text
