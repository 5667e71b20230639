r"""The user's message: one JSON object, written so that its tokens can be counted in pieces.

A piece ends only where the tokenizer's pattern ends a match whatever stands around it:
- before a space that follows a non-space, since no alternative of the pattern holds a space
  except at its start or within white space;
- between the two escaped line breaks that part two blocks (`\n` and `\n`), since a run of letters
  ends before a backslash.
So the tokens of the message are the sum of the tokens of its pieces, exactly.
"""

import json
import re
from collections.abc import Iterator, Sequence

from services.assemble.candidate import Candidate

OPENING = ' {"label":'
SEPARATOR = " ,"
TAIL = " ]}"
BLOCK_BREAK = "\n\n"

_CUT = re.compile(r"(?<=\S) ")

# Model servers turn these into control tokens wherever they stand in a message. One escaped
# character takes that away and leaves the decoded text as it was.
_CONTROL = re.compile(
    r"<(?=[|\uff5c]|/?s>|(?:start|end)_of_turn>|(?:bos|eos|pad|unk)>|</?SYS>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)
_encode = json.JSONEncoder(ensure_ascii=False).encode


def head(question: str) -> str:
    return f'{{"question": {_inert(_encode(question))}, "evidence": ['


def user_message(question: str, sources: Sequence[str]) -> str:
    """The complete text: a JSON object with the question and the evidence."""
    return "".join([head(question), SEPARATOR.join(sources), TAIL])


def label(number: int) -> str:
    """Name of the source of that number, from 1."""
    return f"S{number}"


def label_piece(number: int) -> str:
    return f' "{label(number)}",'


def source(number: int, body: str) -> str:
    return OPENING + label_piece(number) + body


def body(lead: Candidate, text: str) -> str:
    """Everything of a source but its label: one piece, or `description` and `block_pieces`."""
    told = {"title": lead.title, "version": lead.version, "section": " / ".join(lead.headings)}
    fields = {name: value for name, value in told.items() if value}
    return f" {_inert(_encode({**fields, 'text': text}))[1:]}"


def description(lead: Candidate) -> str:
    """A source's body up to its text."""
    return body(lead, "").removesuffix(' ""}')


def cut(text: str) -> tuple[str, ...]:
    """A block's text as it stands in the message, cut so that its inner part is always the same."""
    quoted = _inert(_encode(text))[1:-1]
    begin = _CUT.search(quoted)
    if begin is None:
        return (quoted,)
    end = len(quoted[: quoted.rfind(" ") + 1].rstrip())
    if end == begin.start() or quoted[end] != " ":
        return quoted[: begin.start()], quoted[begin.start() :]
    return quoted[: begin.start()], quoted[begin.start() : end], quoted[end:]


def block_pieces(inner: Sequence[str], *, first: bool, last: bool) -> Iterator[str]:
    """A block's pieces, from `cut`, with what stands before and behind it in its source."""
    begin, end = ' "' if first else r"\n", '"}' if last else r"\n"
    if len(inner) == 1:
        yield f"{begin}{inner[0]}{end}"
        return
    yield f"{begin}{inner[0]}"
    yield from inner[1:-1]
    yield f"{inner[-1]}{end}"


def _inert(encoded: str) -> str:
    return _CONTROL.sub(_escaped, encoded) if "<" in encoded or "[" in encoded else encoded


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
