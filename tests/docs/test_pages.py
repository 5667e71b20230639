"""The pages for people name only what is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
_PATH = re.compile(r"`((?:\w[\w.*-]*/)+[\w.*-]*)`|\]\(([^)#:]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_on_a_page_exists(page: Path) -> None:
    named = [first or second for first, second in _PATH.findall(page.read_text())]
    missing = [name for name in named if not list(ROOT.glob(name.rstrip("/")))]
    assert not missing


def test_the_readme_stays_short_and_its_targets_are_in_the_makefile() -> None:
    readme = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", readme)) <= targets
    assert len(targets) <= 12
    assert len(readme.splitlines()) <= 150
