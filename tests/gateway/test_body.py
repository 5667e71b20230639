"""A body means the same however it is read."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from gateway.body import read
from gateway.chat_schema import ChatRequest
from gateway.schema import AnswerRequest, SearchRequest

BODIES: list[tuple[type[BaseModel], bytes]] = [
    (AnswerRequest, b'{"question":"why","filters":{"areas":["a"],"publication_states":[]}}'),
    (SearchRequest, b'{"question":"why","filters":{},"limit":5}'),
    (ChatRequest, b'{"model":"sluice","messages":[{"role":"user","content":"why"}],"n":1}'),
]
# Where readers of JSON differ.
ODD = st.sampled_from(
    [
        b'"question":"how",',
        b'"limit":7.0,',
        b'"tools":[NaN,-0,1e400],',
        b'"audio":{"a":1,"a":2},',
        b'"n":"1",',
        b'"stream":"yes",',
        b"\\ud800",
        b"\\ud83d\\ude00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\x00",
        b"0",
    ]
)


def read_slowly(model: type[BaseModel], body: bytes) -> BaseModel | None:
    try:
        return model.model_validate(json.loads(body.decode("utf-8", "surrogateescape")))
    except (ValidationError, json.JSONDecodeError):
        return None


def test_what_is_right_is_read_at_once() -> None:
    assert [type(read(model, body)) for model, body in BODIES] == [model for model, _ in BODIES]


@settings(deadline=None)
@given(st.sampled_from(BODIES), ODD | st.binary(max_size=3), st.integers(0, 80))
def test_what_is_read_at_once_is_what_the_framework_would_have_read(
    sent: tuple[type[BaseModel], bytes], odd: bytes, place: int
) -> None:
    model, body = sent
    body = body[:place] + odd + body[place:]
    assert repr(read(model, body)) in {repr(None), repr(read_slowly(model, body))}
