"""The text of an answer on a terminal while it is released, and its withdrawal."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.cells import get_character_cell_size
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from cli.output import Output, safe

REASONS: Mapping[str, str] = {
    "INVALID_OUTPUT": "what the model wrote did not hold against the sources",
    "INTERRUPTED": "the model stopped in the middle",
    "REFUSED": "the model or its filter refused the rest",
    "DEADLINE": "the time was over",
    "EVIDENCE_CHANGED": "the documents have changed, or you may no longer read them",
}
CUT = "the answer broke off"


@contextmanager
def live_text(output: Output) -> Iterator["LiveText"]:
    """Text that is withdrawn unless it was settled, however the block ends."""
    text = LiveText(output.people)
    try:
        yield text
    finally:
        text.withdraw(CUT)


class LiveText:
    """Appears as it is added. What is withdrawn is struck through, and a line says why."""

    def __init__(self, terminal: Console) -> None:
        self._terminal = terminal
        self._shown = ""

    def add(self, text: str) -> None:
        text = safe(text).expandtabs(1)
        self._shown += text
        self._terminal.print(Text(text), end="", soft_wrap=True)

    def withdraw(self, reason: str) -> None:
        if not self._shown:
            return
        if self._erase():
            self._terminal.print(Text(self._shown, style="strike dim"), end="", soft_wrap=True)
        why = f"Withdrawn: {REASONS.get(reason, reason)}."
        self._terminal.print(Text(f"\n{why}", style="yellow"), soft_wrap=True)
        self._shown = ""

    def settle(self, text: str) -> None:
        """The answer's own text, which replaces whatever is shown."""
        if self._shown != safe(text).expandtabs(1):
            self.withdraw("INVALID_OUTPUT")
            self.add(text)
        if self._shown:
            self._terminal.print("\n")
        self._shown = ""

    def _erase(self) -> bool:
        """Clear what is shown. False when some of it has left the screen, or cannot be cleared."""
        rows = rows_of(self._shown, self._terminal.width)
        if rows > self._terminal.height or self._terminal.is_dumb_terminal:
            return False
        up = ((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))
        first = (ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
        self._terminal.control(Control(*first, *up * (rows - 1)))
        return True


def rows_of(text: str, width: int) -> int:
    """Rows that a text from the first column on takes where lines break at the edge."""
    rows, column = 1, 0
    for character in text:
        cells = get_character_cell_size(character)
        if character == "\n":
            rows, column = rows + 1, 0
        elif column + cells > width:
            rows, column = rows + 1, cells
        else:
            column += cells
    return rows
