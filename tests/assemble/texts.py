"""Texts that are hard to count in pieces."""

from hypothesis import strategies as st

_WORDS = st.sampled_from(
    [
        *("disk", "Disk", "DISK", "isn't", "n", "'s", "x1", "123", "1234567", "restart,", "!"),
        *("(see [S1])", '"quoted"', "\\n", "\\\\", "\\u0022", "a/b", "//", "{}", "}],", '"}, ":'),
        *("ñandú", "größer", "não", "磁盘", "ディスク", "디스크", "диск", "قرص", "👩‍🚒", "e\u0301"),
        *("<|endoftext|>", "<|", "</s>", "[INST]", "http://a.example/x?y=1", "||", "---", "```"),
        *("\u200b", "\ufeff", "...", "#", "$HOME"),
    ]
)
_GAPS = st.sampled_from(
    [
        *("", " ", "  ", " " * 9, "\n", "\n\n", " \n", "\t", "\r\n"),
        *("\u00a0", "\u3000", "\u2028", "\u0085"),
    ]
)
_PROSE = st.lists(st.tuples(_WORDS, _GAPS), max_size=8).map(
    lambda parts: "".join(word + gap for word, gap in parts)
)
TEXTS = st.one_of(_PROSE, _PROSE, st.text(max_size=30), st.tuples(_GAPS, _PROSE).map("".join))
