import json

import pytest

from local.models.encoder import MODEL, Purpose
from local.models.inputs import BadRequest, Text, counted, parse


def body(**fields: object) -> bytes:
    return json.dumps({"model": MODEL, "input": "query: hello", **fields}).encode()


def test_the_prefix_is_taken_off_and_says_what_the_text_is_for() -> None:
    wanted = parse(body(input=["query: when?", "passage: query: a quoted prefix stays"]))
    assert wanted.texts == [
        Text(Purpose.QUERY, "when?"),
        Text(Purpose.PASSAGE, "query: a quoted prefix stays"),
    ]
    assert not wanted.base64


@pytest.mark.parametrize(
    ("fields", "message", "parameter"),
    [
        ({"input": ["query: a", "b"]}, "input[1] begins with neither 'query: ' nor", "input"),
        ({"input": ["Query: a"]}, "input[0] begins with neither", "input"),
        ({"input": ["query:  "]}, "input[0] is empty after its prefix", "input"),
        ({"input": ["query: a\0b"]}, "input[0] holds a NUL character", "input"),
        ({"input": ["query: \ud800"]}, "input[0] holds half a surrogate pair", "input"),
        ({"input": [[1, 2]]}, "input[0] is not a text", "input"),
        ({"input": []}, "input is a text or a list of 1 to 256 texts", "input"),
        ({"input": None}, "input is a text or a list", "input"),
        ({"input": ["query: a"] * 257}, "input is a text or a list", "input"),
        ({"model": "another"}, "this server has one model, multilingual-e5-small", "model"),
        ({"dimensions": 128}, "have 384 dimensions", "dimensions"),
        ({"encoding_format": "hex"}, "encoding_format is float or base64", "encoding_format"),
    ],
)
def test_what_can_never_work_is_refused_by_name(
    fields: dict[str, object], message: str, parameter: str
) -> None:
    with pytest.raises(BadRequest) as refusal:
        parse(body(**fields))
    assert message in refusal.value.message
    assert refusal.value.parameter == parameter


@pytest.mark.parametrize("sent", [b"", b"{", b"[]", b"[" * 100_000, b"\xff"])
def test_a_body_that_is_no_json_object_is_refused(sent: bytes) -> None:
    with pytest.raises(BadRequest, match="the body is not"):
        parse(sent)


def test_the_first_text_above_the_limit_is_named_with_its_length() -> None:
    texts = [Text(Purpose.QUERY, "ab"), Text(Purpose.QUERY, "x" * 513)]
    with pytest.raises(BadRequest, match=r"input\[1\] has 513 tokens; .* at most 512"):
        counted(texts, lambda _purpose, text: len(text))
    assert counted(texts[:1], lambda _purpose, text: len(text)) == 2
