import hashlib
import uuid

from hypothesis import given
from hypothesis import strategies as st

from corpus.identity import hash_of, uuid_of

texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=4)


def test_a_hash_is_computed_as_documented() -> None:
    encoded = b"\0\0\0\0\0\0\0\x01a" + b"\0\0\0\0\0\0\0\x02\xc3\xa9"
    assert hash_of("a", "é") == hashlib.sha256(encoded).hexdigest()


def test_an_id_is_the_same_on_every_machine() -> None:
    assert uuid_of("passage", "acme") == "381fad7d-ba6b-85f4-a0fa-bde4bfbaa9b9"


def test_an_id_is_a_valid_uuid() -> None:
    found = uuid.UUID(uuid_of("a"))
    assert (found.version, found.variant) == (8, uuid.RFC_4122)


@given(texts, texts)
def test_different_lists_never_share_an_id(first: list[str], second: list[str]) -> None:
    assert (uuid_of(*first) == uuid_of(*second)) == (first == second)
