"""Texts and the ways to cut them into deltas, for tests of what reads them."""

import json
from collections.abc import Iterator

from hypothesis import strategies as st

# What answers are made of, and what is nearly a mark, an escape or an end.
WORDS = """
    [ ] [[ ]] \uff3b \uff3d \u3010 \u3011 S S1 S2 S3 S12 S12345 1 , ; \u3001
    [S1] [S2] [S3] [S1][S2] [S1,S2] [[S1]] \u3010S1\u3011 arr[0] [abc] [1.5]
    . ! ? \u2026 \u3002 e.g. 3. No. - Mai ``` " \\ { } é 渡船 🚢 Ships wait opens 09:30
"""
BETWEEN = (" ", "\n", "\n\n", "\n- ", "\t", "\r\n", "\u2028", "\x85", "\x00", ". ", ". [S1] ")
PARTS = st.sampled_from([*WORDS.split(), *BETWEEN])
ANSWERS = st.lists(PARTS | st.text(max_size=3), max_size=40).map("".join)


@st.composite
def deltas(draw: st.DrawFn, text: str) -> list[str]:
    """The text, cut anywhere: at every character, nowhere, or here and there."""
    most = max(len(text), 1)
    size = st.sampled_from([1, most]) | st.integers(1, 12)
    sizes = draw(st.lists(size, min_size=1, max_size=8))
    return list(pieces(text, sizes))


def pieces(text: str, sizes: list[int]) -> Iterator[str]:
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        yield text[at : at + size]
        at, turn = at + size, turn + 1


@st.composite
def replies(draw: st.DrawFn, answer: str, status: str = "answered") -> str:
    """A reply with this answer, its fields in any order, with others among them, or fenced."""
    more = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=6,
    )
    fields: list[tuple[str, object]] = [
        ("status", status),
        ("answer", answer),
        ("source_ids", ["S1", "S2"]),
    ]
    fields += draw(
        st.dictionaries(st.sampled_from(["a", "\u00e9", "Answer", "[S9]"]), more, max_size=2)
    ).items()
    reply = json.dumps(
        dict(draw(st.permutations(fields))),
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 1])),
        separators=draw(st.sampled_from([None, (",", ":"), (" ,\t", "\n: ")])),
    )
    return draw(
        st.sampled_from(["{}", " {}\r\n", "```json\n{}\n```", "```\r\n{}\n``` \n"])
    ).replace("{}", reply, 1)
