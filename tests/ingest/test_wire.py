import pytest

from chassis.errors import InvalidInput
from services.ingest.prepare import Header
from services.ingest.wire import preview_response
from tests.ingest.parts import preparation


def test_a_preview_that_no_message_holds_is_refused() -> None:
    text = "\n\n".join(f"Paragraph {number} says something else." for number in range(200))
    prepared = preparation().prepare("acme", Header("a.md", "s"), text.encode())
    size = preview_response(prepared, 1_000_000).ByteSize()
    assert preview_response(prepared, size + 8 * len(prepared.chunks)).ByteSize() == size
    with pytest.raises(InvalidInput, match=r"a\.md: too large to be shown, in \d+ chunks") as error:
        preview_response(prepared, size - 1)
    assert error.value.reason == "PREVIEW_TOO_LARGE"
