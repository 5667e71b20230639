"""Plots as SVG for a page: no script, no font, colours that follow the page's own."""

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator, PercentFormatter

from evals.calibration import Sweep
from evals.figures import OVERALL
from evals.results import Results
from evals.retrieval import KS

# Drawn in colours that nothing else has, which are then named after what they are for.
INK, LINE, BLUE, GREEN, RED, VIOLET, AMBER = COLOURS = tuple(
    f"#0{number}0{number}0{number}" for number in range(1, 8)
)
NAMES = ("ink", "line", "blue", "green", "red", "violet", "amber")
SERIES = {"hit": BLUE, "recall": GREEN, "rr": RED, "ndcg": VIOLET, "precision": AMBER}
WIDTH = 4.7  # inches: as wide as a phone at the size of its own text
BAR = 0.3
SMALL = 8
LABEL = 24  # characters

# What a file of its own needs, or would rule over the page that it stands in.
_OUTER = re.compile(
    r"\A.*?(?=<svg)|<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL
)
_SIZE = re.compile(r'(?<=<svg)([^>]*?) width="[^"]*" height="[^"]*"')
_PART_ID = re.compile(r' id="[a-zA-Z0-9.]+_\d+"')
_FONT = re.compile(r" font-family: [^;\"]*;?")

Paint = Callable[[Axes], None]


def measures(found: Results) -> str:
    """Every retrieval measure over K; empty where nothing was judged."""
    figures = found.groups[OVERALL]
    if f"retrieval.ndcg@{KS[0]}" not in figures:
        return ""

    def paint(axes: Axes) -> None:
        places = range(len(KS))
        for name, colour in SERIES.items():
            values = [figures[f"retrieval.{name}@{k}"].value for k in KS]
            axes.plot(places, values, color=colour, marker="o", markersize=4, label=name)
        axes.set_xticks(places, [f"@{k}" for k in KS])
        axes.set_ylim(0, 1.03)
        _legend(axes, len(SERIES))

    return _svg("measures", 3.0, paint)


def categories(found: Results) -> str:
    """nDCG@10 of every category; empty where nothing was judged or there is one category."""
    name = f"retrieval.ndcg@{max(KS)}"
    values = {
        category: figures[name].value
        for category, figures in found.groups.items()
        if category and name in figures
    }
    if len(values) <= 1:
        return ""

    def paint(axes: Axes) -> None:
        axes.barh(range(len(values)), [*values.values()], color=VIOLET)
        _bars(axes, [*values])

    return _svg("categories", 0.8 + BAR * len(values), paint)


def outcomes(found: Results) -> str:
    """The share of answers that were as expected, by category; empty where none was asked."""
    right = {
        category or "all": figures["answers.correct"].value
        for category, figures in found.groups.items()
        if "answers.correct" in figures
    }
    if not right:
        return ""

    def paint(axes: Axes) -> None:
        places, shares = range(len(right)), [*right.values()]
        axes.barh(places, shares, color=GREEN, label="as expected")
        wrong = [1 - share for share in shares]
        axes.barh(places, wrong, left=shares, color=RED, label="not as expected")
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        _bars(axes, [*right])
        _legend(axes, 2)

    return _svg("outcomes", 0.9 + BAR * len(right), paint)


def waits(found: Results) -> str:
    """The share of calls that were done after so many seconds; empty where none was made."""
    answered = [answer.seconds for case in found.cases for answer in case.answers]
    retrieved = [case.retrieved.seconds for case in found.cases if case.retrieved]

    def paint(axes: Axes) -> None:
        for name, seconds, colour in (("answer", answered, BLUE), ("retrieve", retrieved, GREEN)):
            if seconds:
                axes.ecdf(seconds, color=colour, label=name)
        axes.set_xlabel("seconds")
        axes.set_xlim(left=0)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        _legend(axes, 2)

    return _svg("waits", 2.6, paint) if answered or retrieved else ""


def curve(sweep: Sweep) -> str:
    """Both rates of a sweep over its threshold, with the thresholds that were chosen."""

    def paint(axes: Axes) -> None:
        at = [rates.threshold for rates in sweep.curve]
        accepted = [rates.false_acceptance for rates in sweep.curve]
        refused = [rates.false_refusal for rates in sweep.curve]
        axes.plot(at, accepted, color=RED, label="false acceptance")
        axes.plot(at, refused, color=BLUE, label="false refusal")
        for choice, line in zip(sweep.choices, ("--", ":", "-"), strict=False):
            chosen = choice.development.threshold
            axes.axvline(chosen, color=INK, linestyle=line, linewidth=0.8, label=choice.rule)
        axes.set_ylim(0, 1.03)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        _legend(axes, 2)

    return _svg(sweep.setting, 3.0, paint)


def _bars(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [textwrap.shorten(name, LABEL) for name in names])
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def _legend(axes: Axes, columns: int) -> None:
    axes.legend(ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=SMALL)


def _svg(name: str, height: float, paint: Paint) -> str:
    """One drawing, `height` in inches; its ids come from its name, so that a page holds many."""
    written = io.StringIO()
    with (
        warnings.catch_warnings(),
        mpl.rc_context(
            {
                "axes.axisbelow": True,
                "axes.edgecolor": LINE,
                "axes.facecolor": "none",
                "axes.grid": True,
                "axes.labelcolor": INK,
                "axes.spines.right": False,
                "axes.spines.top": False,
                "figure.facecolor": "none",
                "font.size": 9.0,
                "grid.color": LINE,
                "grid.linewidth": 0.5,
                "legend.frameon": False,
                "legend.labelcolor": INK,
                "svg.fonttype": "none",
                "svg.hashsalt": name,
                "text.color": INK,
                "text.parse_math": False,
                "xtick.color": INK,
                "ytick.color": INK,
            }
        ),
    ):
        # The page's own fonts have what matplotlib's lacks; it only measures.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        canvas = Canvas(figsize=(WIDTH, height), layout="constrained")
        paint(canvas.add_subplot())
        canvas.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return _inlined(written.getvalue())


def _inlined(svg: str) -> str:
    svg = _SIZE.sub(r"\1", _OUTER.sub("", svg))
    svg = _FONT.sub("", _PART_ID.sub("", svg))
    for colour, name in zip(COLOURS, NAMES, strict=True):
        svg = svg.replace(colour, f"var(--{name})")
    return svg
