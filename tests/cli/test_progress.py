import io
import re

import pytest
from rich.console import Console

from cli import progress


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal is sent."""
    sent = io.StringIO()
    terminal = Console(file=sent, force_terminal=True, width=100, no_color=True)
    monkeypatch.setattr(progress, "console", lambda *, stderr: terminal if stderr else None)
    return sent


def test_a_run_shows_how_far_it_is_its_rate_and_the_time_left(screen: io.StringIO) -> None:
    with progress.progress("ingest docs", 10, shown=True) as step:
        for _ in range(3):
            step()
    shown = r"ingest docs .* 3/10 +[\d.]+ files/s left \d:\d\d:\d\d"
    assert re.search(shown, screen.getvalue())


def test_what_is_said_meanwhile_stands_above_the_bar_and_steers_no_terminal(
    screen: io.StringIO,
) -> None:
    with progress.progress("ingest docs", 10, shown=True) as step:
        step.say("nothing answers \x1b[2J here")
    assert "nothing answers \N{REPLACEMENT CHARACTER}[2J here\n" in screen.getvalue()


def test_nothing_moves_where_nobody_looks_but_what_is_said_is_heard(screen: io.StringIO) -> None:
    with progress.progress("ingest docs", 10, shown=False) as step:
        step()
        step.say("nothing answers")
    assert screen.getvalue() == "nothing answers\n"
