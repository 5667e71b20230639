"""What a person sees on a terminal of a few rows: just the sequences that the command writes."""

import re
import unicodedata

_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\x1b\[\?[0-9;]*[hl]|(\r\n|\r|\n|.)", re.DOTALL)
STRUCK = "9"


class Screen:
    """Rows of characters; `struck` are those that were written with a line through them."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[list[tuple[str, bool]]] = [[]]
        self._row = self._column = 0
        self._is_struck = False

    def write(self, text: str) -> None:
        for codes, command, character in _SEQUENCE.findall(text):
            if command == "m":
                self._is_struck = STRUCK in codes.split(";")
            elif command == "A":
                self._row = max(0, self._row - int(codes or 1))
            elif command == "K":
                self._rows[self._row].clear()
            elif character:
                self._put(character)

    def _put(self, character: str) -> None:
        if "\r" in character:
            self._column = 0
        if "\n" in character:
            self._break()
        elif character != "\r":
            cells = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self._column + cells > self._width:
                self._break()
            filled = [(character, self._is_struck), ("", False)][:cells]
            self._rows[self._row][self._column : self._column + cells] = filled
            self._column += cells

    def _break(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append([])

    @property
    def lines(self) -> list[str]:
        return ["".join(character for character, _ in row) for row in self._rows]

    @property
    def held(self) -> str:
        """What is not struck."""
        return "\n".join("".join(c for c, struck in row if not struck) for row in self._rows)
