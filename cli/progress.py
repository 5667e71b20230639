"""A progress bar with rate and time left, on a terminal only."""

from collections.abc import Callable, Iterator
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

from cli.output import console

Step = Callable[[], None]


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f} {self._unit}/s" if task.speed else "")


@contextmanager
def progress(title: str, total: int, *, shown: bool, unit: str = "files") -> Iterator[Step]:
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
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
