from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chassis.identity import AccessLevel
from corpus.epochs import LIVE
from corpus.points import Kind, State, StoredBlock, StoredPassage

PASSAGE = StoredPassage(
    tenant="acme",
    document_id="runbooks/disk.md",
    source="runbooks",
    revision="r1",
    content_hash="c1",
    chunking_version="blocks1-256-1",
    chunk=0,
    chunks=1,
    input_hash="1f" * 32,
    title="Disk full",
    version="3",
    area="storage",
    document_type="runbook",
    state=State.PUBLISHED,
    access=AccessLevel.TEAM,
    groups=(),
    uri="https://wiki.example/disk",
    section_id="s1",
    heading_path=("Disk full", "Steps"),
    blocks=(
        StoredBlock(0, 0, Kind.PARAGRAPH, 10, 24, "Free the disk."),
        StoredBlock(1, 2, Kind.TABLE, 90, 99, "| a | b |", "| x | y |\n|---|---|"),
    ),
    valid_from=1,
    valid_to=LIVE,
)


@pytest.fixture
def passage() -> Callable[..., StoredPassage]:
    """A passage that differs from the usual one in the given fields."""

    def build(**changes: Any) -> StoredPassage:  # noqa: ANN401 - any field
        return replace(PASSAGE, **changes)

    return build
