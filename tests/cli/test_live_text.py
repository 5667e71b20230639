"""The text of an answer on a terminal: it appears as it comes, and what does not hold is struck."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli.live_text import LiveText, live_text, rows_of
from cli.output import Output
from tests.cli.screen import Screen

WIDTH = 12
LONG = "Deploys run on Monday. [S1] Not on Tuesday. [S2]"


class Terminal:
    def __init__(self, height: int = 20, **kind: str) -> None:
        self.file = io.StringIO()
        self.console = Console(
            file=self.file,
            force_terminal=True,
            width=WIDTH,
            height=height,
            highlight=False,
            _environ={"TERM": "xterm", **kind},
        )
        self.text = LiveText(self.console)
        self.file.write("$ sluice\r\n")

    @property
    def screen(self) -> Screen:
        screen = Screen(WIDTH)
        screen.write(self.file.getvalue().replace("\n", "\r\n"))
        return screen


def test_text_appears_as_it_is_added_and_stays_once_it_is_settled() -> None:
    terminal = Terminal()
    terminal.text.add("Deploys ")
    assert "".join(terminal.screen.lines) == "$ sluiceDeploys "
    terminal.text.add("run.")
    terminal.text.settle("Deploys run.")
    terminal.text.withdraw("INTERRUPTED")
    assert terminal.screen.lines == ["$ sluice", "Deploys run.", "", ""]
    assert "Withdrawn" not in terminal.screen.held


def test_withdrawn_text_is_struck_where_it_stood_and_a_line_says_why() -> None:
    terminal = Terminal()
    for word in LONG.split(" "):
        terminal.text.add(f"{word} ")
    terminal.text.withdraw("DEADLINE")
    lines = terminal.screen.lines
    assert lines[0] == "$ sluice"
    assert "".join(lines[1:6]).startswith(LONG)
    assert "Monday" not in terminal.screen.held
    assert "".join(lines[6:]).rstrip() == "Withdrawn: the time was over."


@given(st.lists(st.text("ab 日本\n\t\x1bé", max_size=15), min_size=1, max_size=6))
def test_whatever_was_shown_is_withdrawn_exactly(pieces: list[str]) -> None:
    terminal = Terminal(height=200)
    for piece in pieces:
        terminal.text.add(piece)
    terminal.text.withdraw("REFUSED")
    first, *rest = terminal.screen.held.split("\n")
    said = "Withdrawn: the model or its filter refused the rest."
    assert (first, "".join(rest)) == ("$ sluice", said if "".join(pieces) else "")


def test_text_that_has_left_the_screen_is_said_to_be_withdrawn() -> None:
    for terminal in (Terminal(height=3), Terminal(TERM="dumb")):
        terminal.text.add(LONG)
        terminal.text.withdraw("EVIDENCE_CHANGED")
        assert "".join(terminal.screen.lines).endswith("you may no longer read them.")
        assert "\x1b[1A" not in terminal.file.getvalue()


def test_other_text_than_the_answers_own_does_not_stay() -> None:
    terminal = Terminal()
    terminal.text.add("Deploys run.")
    terminal.text.settle("They do not.")
    assert "Deploys" not in terminal.screen.held
    assert "They do not." in terminal.screen.held


@pytest.mark.parametrize("settled", [False, True])
def test_only_settled_text_outlives_the_block(*, settled: bool) -> None:
    terminal, output = Terminal(), Output(as_json=False)
    output.people = terminal.console
    with live_text(output) as text:
        text.add("Deploys run.")
        if settled:
            text.settle("Deploys run.")
    assert ("Deploys run." in terminal.screen.held) is settled
    assert ("broke off" in "".join(terminal.screen.lines)) is not settled


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", 1),
        ("a" * WIDTH, 1),
        ("a" * (WIDTH + 1), 2),
        ("a\n", 2),
        ("日" * 6, 1),
        ("a" + "日" * 6, 2),
        ("a" * WIDTH + "\nb", 2),
    ],
)
def test_rows_are_counted_as_terminals_break_lines(text: str, rows: int) -> None:
    assert rows_of(text, WIDTH) == rows
