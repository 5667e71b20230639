import os
from pathlib import Path

import pytest

from chassis.errors import InvalidInput
from cli import folder
from cli.folder import Problem
from services.ingest.prepare import Header, check


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text")


def ids(root: Path) -> list[str]:
    return [file.document_id for file in folder.walk(root).files]


def test_documents_are_named_by_their_path_below_the_folder_and_sorted(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "a/z.txt", "a/B.MD", "a.markdown")
    assert ids(tmp_path) == ["a.markdown", "a/B.MD", "a/z.txt", "b.md"]


def test_every_format_that_ingest_reads_is_a_document(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.markdown", "c.txt", "d.html", "e.HTM", "f.pdf", "g.docx", "h.doc")
    assert ids(tmp_path) == ["a.md", "b.markdown", "c.txt", "d.html", "e.HTM", "f.pdf", "g.docx"]
    for extension in folder.EXTENSIONS:
        assert check(Header(f"a{extension}", "s"))


def test_what_is_no_document_is_counted_by_rule(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "README.md", "sub/README.md", "_draft.md", ".git/x.md", "logo.png")
    found = folder.walk(tmp_path)
    assert [file.document_id for file in found.files] == ["a.md"]
    assert found.skipped == {
        "README.md": 2,
        "names that begin with . or _": 1,
        "hidden folders": 1,
        "formats that are not read": 1,
    }
    assert found.problems == []


def test_a_folder_that_begins_with_an_underscore_is_walked(tmp_path: Path) -> None:
    write(tmp_path, "_posts/a.md", "_posts/_draft.md")
    assert ids(tmp_path) == ["_posts/a.md"]


def test_links_are_followed_to_files_inside_the_folder_only(tmp_path: Path) -> None:
    write(tmp_path, "root/a.md", "root/sub/b.md", "outside.md", "elsewhere/c.md")
    root = tmp_path / "root"
    (root / "inside.md").symlink_to("a.md")
    (root / "outside.md").symlink_to(tmp_path / "outside.md")
    (root / "elsewhere").symlink_to(tmp_path / "elsewhere")
    (root / "loop").symlink_to(root / "sub")
    (root / "broken.md").symlink_to(root / "nothing.md")
    found = folder.walk(root)
    assert [file.document_id for file in found.files] == ["a.md", "inside.md", "sub/b.md"]
    assert found.problems == [
        Problem("broken.md", "not a regular file"),
        Problem("elsewhere", "a link to outside the folder"),
        Problem("loop", "a link to a folder"),
        Problem("outside.md", "a link to outside the folder"),
    ]


def test_a_pipe_named_like_a_document_is_reported_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert folder.walk(tmp_path).problems == [Problem("pipe.md", "not a regular file")]


def test_a_name_that_is_not_utf_8_is_reported_in_readable_form(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md"))).write_text("text")
    problem = Problem("caf\N{REPLACEMENT CHARACTER}.md", "the name is not UTF-8")
    assert folder.walk(tmp_path).problems == [problem]


def test_a_single_file_is_named_by_its_own_name(tmp_path: Path) -> None:
    write(tmp_path, "sub/a.md")
    assert ids(tmp_path / "sub" / "a.md") == ["a.md"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing", "there is no file or folder"), ("logo.png", "none of the formats that are read")],
)
def test_a_path_that_can_give_no_document_is_refused(
    tmp_path: Path, name: str, message: str
) -> None:
    write(tmp_path, "logo.png")
    with pytest.raises(InvalidInput, match=message):
        folder.walk(tmp_path / name)
