"""What the person sees: text on a terminal, or one JSON document on standard output."""

import asyncio
import json
import math
import re
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from chassis.errors import SluiceError, Unauthenticated
from cli import exits
from cli.identity import expired
from local.failures import LocalFailure

PIPED_WIDTH = 160
REFUSED_IDENTITY = (
    "Development identities need SLUICE_ENV=development there; else set SLUICE_TOKEN."
)

# A document's text may hold sequences that would steer the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Output:
    """`as_json` leaves standard output to the one document; people read standard error then."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.people = console(stderr=as_json)

    def line(self, text: str = "", style: str = "") -> None:
        """A line of text, shown as it is: no mark-up, no control characters."""
        self.people.print(Text(safe(text), style=style), soft_wrap=True)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table, unless it has no rows."""
        table = Table(title=Text(title), title_justify="left", title_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text(safe(str(cell))) for cell in row))
        if table.row_count:
            self.people.print(table)

    def document(self, value: object) -> None:
        """The result for programs; nothing without --json."""
        if self.as_json:
            print(json.dumps(value, indent=2))

    def failure(self, failure: exits.Failure) -> None:
        """The error in one or a few lines on standard error, and as the document."""
        reason = failure.reason if isinstance(failure, SluiceError) else type(failure).__name__
        message = "\n".join([failure.message, *_notes(failure)])
        error: dict[str, Any] = {"message": message, "reason": reason}
        if isinstance(failure, SluiceError) and failure.retry_after is not None:
            error["retry_after"] = failure.retry_after
        terminal = console(stderr=True)
        terminal.print(Text(safe(message), style="red"), soft_wrap=True)
        if "retry_after" in error:
            terminal.print(f"Try again in {math.ceil(error['retry_after'])} s.", soft_wrap=True)
        if isinstance(failure, Unauthenticated) and not expired(failure):
            terminal.print(REFUSED_IDENTITY, soft_wrap=True)
        self.document({"error": error})


def console(*, stderr: bool) -> Console:
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = PIPED_WIDTH
    return made


def safe(text: str) -> str:
    """The text with control characters but tab and newline made visible."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def titled(document_id: str, title: str) -> str:
    """The document's id and title; a document without a title has its id for one."""
    return document_id if title == document_id else f"{document_id}: {title}"


def finish(output: Output, work: Callable[[], Coroutine[Any, Any, int]]) -> None:
    """Run a command to its exit code. What went wrong is a line, never a traceback."""
    try:
        code = asyncio.run(_interruptible(work))
    except (SluiceError, LocalFailure) as failure:
        output.failure(failure)
        code = exits.code_of(failure)
    except KeyboardInterrupt as stop:
        print("stopped", *_notes(stop.__context__), sep="\n", file=sys.stderr)
        code = exits.INTERRUPTED
    raise typer.Exit(code)


async def _interruptible(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """The work, which Ctrl-C ends at once.

    The runner's own handler is not heard when the signal comes just before the loop begins to
    wait, until something else wakes the loop; a handler of the loop's wakes it itself.
    """
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, handler, signal.SIGINT, None)
    return await work()


def _notes(error: BaseException | None) -> Sequence[str]:
    return getattr(error, "__notes__", ())
