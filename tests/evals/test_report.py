"""Results are kept and read again, and a report shows them wherever it is opened."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from chassis.errors import InvalidInput
from evals import comparison, figures, gates, report, results
from evals.calibration import Evidence, is_held_out, sweep
from evals.gold import Gate
from evals.qualification import Count, Place, Qualification
from evals.results import Results, Settings
from tests.evals.cases import abstained, answer, case, found, unanswerable
from tests.evals.test_figures import result

NASTY = (
    "<script>alert('$x$')</script> & \"<img src=x onerror=y>\""
    " \u2028 $\\frac{1}{2}$ \N{PILE OF POO}"
)
SETTINGS = Settings(
    gold=NASTY,
    gold_digest="abc",
    tenant="demo",
    documents=5,
    corpus_revision="r",
    chunking_version="v1",
    embedding_profile="profile",
    search_mode="default",
    diversity="default",
    retrieval=["top_k=8"],
    score_space="COSINE",
    instructions_versions=["en-1"],
    models=[],
    repeat=2,
    code_version="1",
    code_revision="",
)


def evidence() -> list[Evidence]:
    names = [str(number) for number in range(20)]
    return [
        Evidence(name, number % 2 == 0, number / 20)
        for half in (True, False)
        for number, name in enumerate(one for one in names if is_held_out(one) is half)
    ]


@pytest.fixture(scope="module")
def everything() -> Results:
    """Every part of results, with texts that mean harm wherever there are texts."""
    cases = [
        result(
            case(id=NASTY, category=NASTY, question=NASTY, secret=["Deploys"]),
            passages=found(("a.md", 0), (NASTY, 0)),
            given=[answer(text=NASTY, marks=(), shown="Deploys"), abstained()],
        ),
        result(unanswerable(), passages=found(), given=[abstained(), abstained()]),
        result(case(id="other", category="other"), passages=found()),
    ]
    groups = figures.groups(cases)
    side = results.side("then", SETTINGS, groups, cases)
    earlier = results.side("before", SETTINGS, figures.groups(cases[1:]), cases[1:])
    return Results(
        format=results.FORMAT,
        date="2026-11-30T08:00:00+00:00",
        seconds=1.5,
        settings=SETTINGS,
        groups=groups,
        outcomes=figures.outcomes(cases),
        gates=gates.judge([Gate(metric="answers.leaks", at_most=0)], cases, None),
        comparison=comparison.compare(earlier, side),
        calibration=[sweep(NASTY, "support", evidence(), 0.5)],
        qualification=Qualification(
            candidate=NASTY,
            place=Place(NASTY, "host", "pool"),
            fingerprint="f",
            served_models=[NASTY],
            levels=["public"],
            passed=False,
            mode="review",
            reasons=[NASTY],
            shared=[],
            counts=[Count(NASTY, "normal", 1, 1, 0, 0)],
            development=1,
            above_levels=0,
        ),
        cases=cases,
    )


class Elements(HTMLParser):
    """Names of the elements, their ids, and every attribute that loads or runs something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.ids: list[str] = []
        self.active: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            local = (value or "").startswith("#")
            if name.startswith("on") or (name in {"src", "href", "xlink:href"} and not local):
                self.active.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_results_are_read_as_they_were_written(everything: Results, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(results.to_json(everything))
    read = results.read(path)
    assert results.to_json(read) == results.to_json(everything)
    assert read.side.cases == everything.side.cases


@pytest.mark.parametrize("text", ["", "{}", '{"format": 1}', None])
def test_what_are_no_results_is_an_input_error(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "results.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput, match=str(path)):
        results.read(path)


def test_the_page_holds_no_script_and_loads_nothing(everything: Results) -> None:
    page = Elements(report.page(everything))
    assert not {"script", "link", "img", "iframe", "object"} & {*page.names}
    assert page.active == []
    assert page.names.count("svg") == 5


def test_texts_are_shown_as_they_are_and_never_read_as_markup(everything: Results) -> None:
    text = "".join(Elements(report.page(everything)).text)
    assert text.count("<script>alert('$x$')</script>") >= 5
    assert "1 of 1 gates failed" not in text
    assert "is not qualified" in text


def test_the_drawings_have_ids_of_their_own_and_the_pages_colours(everything: Results) -> None:
    page = report.page(everything)
    ids = Elements(page).ids
    assert len(ids) == len({*ids})
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert "var(--ink)" in drawn
    assert not re.search(r"(?:fill|stroke): #(?!000000)", drawn)
    assert "<style" not in drawn
    referred = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawn))
    assert referred <= {*ids}


def test_the_page_is_the_same_for_the_same_results(everything: Results) -> None:
    assert report.page(everything) == report.page(everything)
