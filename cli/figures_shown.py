"""What an evaluation found, on the terminal."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cli.output import Output
from evals.figures import MEASURES, OVERALL, Figure, Figures
from evals.gates import Judged
from evals.results import Results
from evals.retrieval import KS

MOST_CASES = 20
GATES = {True: "passed", False: "FAILED", None: "not judged"}


def show(output: Output, found: Results, paths: Sequence[Path]) -> None:
    settings = found.settings
    output.line(
        f"{settings.gold}: {len(found.cases)} cases, {settings.documents} documents,"
        f" {settings.embedding_profile}, {settings.chunking_version},"
        f" {found.seconds:.0f} s",
        style="bold",
    )
    _show_retrieval(output, found.groups[OVERALL])
    _show_answers(output, found)
    _show_wrong(output, found)
    _show_comparison(output, found)
    _show_calibration(output, found)
    _show_qualification(output, found)
    gates = [_gate(one) for one in found.gates]
    output.table("gates", ("figure", "bound", "value", "over", ""), gates)
    for path in paths:
        output.line(str(path), style="dim")


def _show_retrieval(output: Output, figures: Figures) -> None:
    rows = [
        (name, *(f"{figures[f'retrieval.{name}@{k}'].value:.3f}" for k in KS))
        for name in MEASURES
        if f"retrieval.{name}@{KS[0]}" in figures
    ]
    count = next((one.count for name, one in figures.items() if name.endswith("@1")), 0)
    output.table(f"retrieval, means over {count} cases", ("", *(f"@{k}" for k in KS)), rows)
    _show_rest(output, "retrieval", figures)


def _show_answers(output: Output, found: Results) -> None:
    _show_rest(output, "answers", found.groups[OVERALL])
    output.table("outcomes", ("mode and reason", "answers"), found.outcomes.items())
    names = ("correct", "answered", "false_refusal", "false_acceptance", "leaks")
    rows = [
        (category, *(_short(figures.get(f"answers.{name}")) for name in names))
        for category, figures in found.groups.items()
        if category and "answers.correct" in figures
    ]
    output.table("by category", ("category", *names), rows)


def _show_rest(output: Output, stage: str, figures: Figures) -> None:
    rows = [
        (name.removeprefix(f"{stage}."), _short(figure), figure.count, _range(figure))
        for name, figure in figures.items()
        if name.startswith(f"{stage}.") and "@" not in name
    ]
    output.table(stage, ("figure", "value", "over", "single repeats"), rows)


def _show_wrong(output: Output, found: Results) -> None:
    wrong = [case for case in found.cases if case.correct is False]
    rows = [(case.id, case.expected, ", ".join(dict.fromkeys(case.outcomes))) for case in wrong]
    title = f"not as expected: {len(wrong)} of {len(found.cases)}"
    output.table(title, ("case", "expected", "came"), rows[:MOST_CASES])


def _show_comparison(output: Output, found: Results) -> None:
    compared = found.comparison
    if compared is None:
        return
    output.line(f"compared with the run of {compared.earlier}", style="bold")
    output.table("set differently", ("setting", "before", "now"), compared.settings)
    moved = [
        (one.metric, f"{one.before:.3f}", f"{one.now:.3f}", _word(better=one.better))
        for one in compared.figures
        if not one.category
    ]
    output.table("moved", ("figure", "before", "now", ""), moved)
    for title, changes in (
        ("worse", compared.regressions),
        ("better", compared.improvements),
    ):
        rows = [(one.id, one.what, one.before, one.now) for one in changes[:MOST_CASES]]
        output.table(f"{title}: {len(changes)}", ("case", "what", "before", "now"), rows)


def _word(*, better: bool | None) -> str:
    return "" if better is None else "better" if better else "worse"


def _show_calibration(output: Output, found: Results) -> None:
    for sweep in found.calibration:
        rows = [
            (
                choice.rule,
                f"{choice.development.threshold:.3f}",
                *_percent(
                    choice.development.false_acceptance,
                    choice.development.false_refusal,
                    choice.held_out.false_acceptance,
                    choice.held_out.false_refusal,
                ),
            )
            for choice in sweep.choices
        ]
        columns = ("rule", "threshold", "accepted", "refused", "held out: accepted", "refused")
        output.table(f"{sweep.setting} ({sweep.space}), falsely", columns, rows)


def _show_qualification(output: Output, found: Results) -> None:
    told = found.qualification
    if told is None:
        return
    rows = [
        (one.category, one.severity, one.answers, one.answered, one.correct, one.leaked)
        for one in told.counts
    ]
    columns = ("category", "severity", "answers", "with content", "as expected", "leaked")
    output.table(f"{told.candidate}, held-out cases", columns, rows)
    output.line(f"shared with the primary: {', '.join(told.shared) or 'nothing known'}")
    for reason in told.reasons:
        output.line(reason, style="yellow")
    verdict = f"qualified, mode {told.mode}" if told.passed else "NOT qualified"
    output.line(f"{told.candidate}: {verdict}", style="bold green" if told.passed else "bold red")


def _percent(*shares: float) -> Iterable[str]:
    return (f"{share:.0%}" for share in shares)


def _gate(one: Judged) -> tuple[object, ...]:
    name = " of ".join(filter(None, (one.metric, ", ".join(one.categories))))
    value = "" if one.value is None else f"{one.value:.4g}"
    mode = "(for mode full)" if one.for_full else ""
    state = " ".join(filter(None, (GATES[one.passed], one.why, mode)))
    return name, f"{one.rule} {one.bound:g}", value, one.count, state


def _short(figure: Figure | None) -> str:
    return "" if figure is None else f"{figure.value:.4g}"


def _range(figure: Figure) -> str:
    return "" if figure.low is None else f"{figure.low:.4g} to {figure.high:.4g}"
