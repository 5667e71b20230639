import pytest

from cli.answer import described
from cli.gateway_service import Source


@pytest.mark.parametrize(
    ("title", "headings", "shown"),
    [
        ("Deploys", ("Deploys", "Window"), "a.md: Deploys / Window (score 0.900)"),
        ("Deploys", (), "a.md: Deploys (score 0.900)"),
        ("a.md", (), "a.md (score 0.900)"),
        ("a.md", ("a.md",), "a.md (score 0.900)"),
    ],
)
def test_a_source_is_named_once(title: str, headings: tuple[str, ...], shown: str) -> None:
    assert described(Source("S1", "a.md", title, "", headings, "text", 0.9, "")) == shown
