"""The results as one page that opens anywhere: no script, nothing from elsewhere, texts escaped."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from evals import plots
from evals.figures import OVERALL, Figure
from evals.gates import failed
from evals.result import CaseResult
from evals.results import Results

_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def page(found: Results) -> str:
    """The page as HTML."""
    drawn = {
        "Retrieval over K": plots.measures(found),
        "nDCG@10 by category": plots.categories(found),
        "Outcomes by category": plots.outcomes(found),
        "Time of a call": plots.waits(found),
    }
    drawn |= {f"{sweep.setting} ({sweep.space})": plots.curve(sweep) for sweep in found.calibration}
    return _PAGES.get_template("report.html").render(
        found=found,
        settings=asdict(found.settings),
        failed=failed(found.gates),
        # Drawn by us from numbers; the names in them were escaped by the drawing.
        plots={title: Markup(svg) for title, svg in drawn.items() if svg},  # noqa: S704
        groups=[name for name in found.groups if name],
        metrics=_metrics(found),
        overall=found.groups[OVERALL],
        cases=sorted(found.cases, key=_wrong_first),
        shown=_shown,
    )


def _metrics(found: Results) -> Sequence[str]:
    return list(dict.fromkeys(name for figures in found.groups.values() for name in figures))


def _wrong_first(case: CaseResult) -> tuple[bool, float]:
    measures = case.retrieved.measures if case.retrieved else {}
    return case.correct is not False, measures.get("ndcg@10", 1.0)


def _shown(figure: Figure | None) -> str:
    if figure is None:
        return ""
    spread = "" if figure.low is None else f" ({figure.low:.3g} to {figure.high:.3g})"
    return f"{figure.value:.4g}{spread}"
