"""What the table is made of, and that no benchmark is missing from it."""

from pathlib import Path

import pytest

from bench.__main__ import NAMES, table
from bench.growth import GROWTHS, draw
from bench.parts.rows import Reach, row

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize(
    ("reach", "figure", "than", "met"),
    [
        (Reach(1.25), 1.25, 1.0, True),
        (Reach(1.25), 1.26, 1.0, False),
        (Reach(50, least=True), 49.0, 1.0, False),
        (Reach(50, least=True), 50.0, 1.0, True),
        (Reach(2, "figure"), 2.0, 0.5, True),
        (Reach(2, "figure"), 2.1, None, False),
        (Reach(0.7), 5.0, None, None),
    ],
)
def test_a_row_says_whether_the_figure_or_its_ratio_reaches(
    reach: Reach, figure: float, than: float | None, *, met: bool | None
) -> None:
    assert row("a call", figure, "ms", reach, beside="another", than=than)["met"] is met


def test_the_table_holds_a_line_a_row_with_what_stands_beside_it() -> None:
    found = row("a call", 4.0, "ms", Reach(1.25), beside="an echo", than=2.0)
    lost = row("deltas lost", 0, "", Reach(0, "figure"))
    lines = table({"hops": [found], "stream": [lost]}).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2] == ["hops", "a call", "4 ms", "an echo: 2 ms", "2", "<= 1.25 x", "NO"]
    assert cells[3] == ["stream", "deltas lost", "0", "", "", "<= 0", "yes"]


def test_every_benchmark_is_in_the_table_and_grows() -> None:
    files = {path.stem for path in BENCH.glob("*.py")}
    assert files - {"__main__", "growth"} == set(NAMES)
    assert {growth.bench for growth in GROWTHS} == set(NAMES) - {"start"}


def test_growth_is_drawn_for_pages_and_for_people(tmp_path: Path) -> None:
    draw({growth.bench: [1.0, 2.0] for growth in GROWTHS}, tmp_path)
    drawn = (tmp_path / "growth.svg").read_text()
    assert all(f"<!-- {growth.bench} -->" in drawn for growth in GROWTHS)
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
