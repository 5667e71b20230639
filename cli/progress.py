"""A progress bar with rate and time left, on a terminal only."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from cli.output import console, safe


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f} {self._unit}/s" if task.speed else "")


class Bar:
    """Called once a unit that is done."""

    def __init__(self, shown: Progress, total: int, title: str) -> None:
        self._shown = shown
        self._task = shown.add_task(title, total=total)

    def __call__(self) -> None:
        self._shown.advance(self._task)

    def say(self, text: str) -> None:
        """A line on standard error, above the bar."""
        self._shown.console.print(Text(safe(text), style="yellow"), soft_wrap=True)


@contextmanager
def progress(title: str, total: int, *, shown: bool, unit: str = "files") -> Iterator[Bar]:
    """A bar of `total` units on standard error. Call what it yields once a unit."""
    terminal = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(unit),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=terminal,
        transient=True,
        disable=not (shown and terminal.is_terminal),
    )
    with bar:
        yield Bar(bar, total, title)
