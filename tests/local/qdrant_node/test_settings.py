from pathlib import Path

import pytest

from local.qdrant_node.database import Database
from local.qdrant_node.errors import StartError
from local.qdrant_node.settings import read_settings


def test_the_defaults_are_the_documented_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_QDRANT_PORT", raising=False)
    monkeypatch.delenv("SLUICE_QDRANT_DATA", raising=False)

    settings = read_settings()

    assert (settings.port, settings.data) == (6334, Path(".sluice/qdrant"))


@pytest.mark.parametrize("port", ["abc", "0", "65536", ""])
def test_a_wrong_port_is_refused_by_name_with_an_example(
    monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("SLUICE_QDRANT_PORT", port)

    with pytest.raises(StartError, match=f"SLUICE_QDRANT_PORT={port}: .*; for example 6334"):
        read_settings()


def test_a_data_folder_that_is_a_file_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(StartError, match=f"SLUICE_QDRANT_DATA={file}: File exists"):
        Database(file)


@pytest.mark.parametrize("content", ["", "[]", '{"format": 2}', '{"format": 1, "collections": []}'])
def test_a_damaged_catalogue_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(content)
    kept = tmp_path / "collections" / ("0" * 32)
    kept.mkdir(parents=True)

    with pytest.raises(StartError, match=r"catalogue\.json: "):
        Database(tmp_path)

    assert catalogue.read_text() == content
    assert kept.exists()
