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
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f} files/s" if task.speed else "")


@contextmanager
def progress(title: str, total: int, *, shown: bool) -> Iterator[Step]:
    """A bar of `total` files on standard error. Call what it yields once a file."""
    terminal = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=terminal,
        transient=True,
        disable=not (shown and terminal.is_terminal),
    )
    with bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
