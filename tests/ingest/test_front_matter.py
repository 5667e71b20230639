import pytest

from chassis.errors import InvalidInput
from chassis.identity import AccessLevel
from corpus.points import State
from services.ingest.front_matter import FrontMatter, read
from services.ingest.metadata import Given

FULL = """\
---
title: "Disk: full"
version: 1.10
area: storage
document_type: runbook
publication_state: draft
access: restricted
groups: [sre, dba, sre]
uri: https://wiki.example/disk
tags: {any: [thing]}
---
body
"""


def refusal(text: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read(text, "x.md")
    return caught.value


def test_every_field_is_read_and_others_are_passed_over() -> None:
    found = read(FULL, "x.md")
    assert FULL[found.body :] == "body\n"
    assert found.given == Given(
        title="Disk: full",
        version="1.10",
        area="storage",
        document_type="runbook",
        state=State.DRAFT,
        access=AccessLevel.RESTRICTED,
        groups=("dba", "sre"),
        uri="https://wiki.example/disk",
    )


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("# A\n---\n---", "# A\n---\n---"),
        ("---\n---\nbody", "body"),
        ("---\n# only a comment\n---\nbody", "body"),
        ("---  \ntitle:\n---\t\nbody", "body"),
        ("\n\n---\ntitle:\n---\nbody", "body"),
        ("---\ntitle:\n---", ""),
        ("---\nonly prose\n\n---\nmore", "---\nonly prose\n\n---\nmore"),
        ("---\n\nA line of dashes and prose.", "---\n\nA line of dashes and prose."),
        ("----\ntitle: x\n----\n", "----\ntitle: x\n----\n"),
        ("+++ is a word here", "+++ is a word here"),
        ("---json is a word here", "---json is a word here"),
    ],
)
def test_without_fields_nothing_is_said(text: str, body: str) -> None:
    found = read(text, "x.md")
    assert (found.given, text[found.body :]) == (Given(), body)


def test_a_null_says_nothing() -> None:
    text = "---\ntitle: ~\naccess: null\ngroups:\n---\n"
    assert read(text, "x.md") == FrontMatter(Given(), len(text))


@pytest.mark.parametrize(
    ("line", "field", "complaint"),
    [
        ("access: secret", "access", "'secret' is not an access level; allowed: public, team, res"),
        ("access: [team]", "access", "expected one text"),
        ("access: Team", "access", "'Team' is not"),
        ("publication_state: live", "publication_state", "allowed: draft, published"),
        ("title: [a, b]", "title", "expected one text"),
        ("title: {a: b}", "title", "expected one text"),
        (f"title: {'x' * 513}", "title", "513 characters where 512 are allowed"),
        ('title: "a\\nb"', "title", "characters that cannot be shown"),
        ("groups: sre", "groups", "expected a list of groups"),
        ("groups: [[sre]]", "groups", "expected one text"),
        ("groups: [sre, '*']", "groups", r"'\*' cannot name a group"),
        ("groups: [' ']", "groups", "'' cannot name a group"),
        ("groups: [~]", "groups", "expected one text"),
        (f"groups: [{','.join(map(str, range(65)))}]", "groups", "65 groups where 64"),
        ("uri: javascript:alert(1)", "uri", "not a web address"),
        ("uri: 'http://['", "uri", "not a web address"),
        ("acess: restricted", "acess", "unknown; 'access' is how it is written"),
        ("Access: restricted", "Access", "unknown; 'access' is how it is written"),
        ("access_level: team", "access_level", "unknown; 'access' is how it is written"),
        ("group: [sre]", "group", "unknown; 'groups' is how it is written"),
        ("publication-state: draft", "publication-state", "unknown; 'publication_state' is"),
        ("<<: {access: team}", "<<", "merged fields are not read"),
    ],
)
def test_a_wrong_value_is_refused_with_document_line_and_field(
    line: str, field: str, complaint: str
) -> None:
    error = refusal(f"---\nversion: 1\n{line}\n---\nbody")
    assert error.field == field
    assert error.message.startswith(f"x.md, line 3: {field}: ")
    assert error.metadata == {"document_id": "x.md", "line": "3"}
    with pytest.raises(InvalidInput, match=complaint):
        raise error


def test_a_field_that_stands_twice_is_refused_at_the_second() -> None:
    error = refusal("---\naccess: public\ntitle: x\naccess: restricted\n---\n")
    assert error.message == "x.md, line 4: access: stands here a second time"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\ntitle: x\nbad: [\n---\n", "x.md, line 4: not YAML"),
        ("---\ntitle: a: b\n---\n", "x.md, line 2: not YAML: mapping values are not allowed"),
        ("---\n\ttitle: x\n---\n", "x.md, line 2: not YAML"),
        ("---\ntitle: \x07\n---\n", "x.md, line 2: not YAML"),
        ("---\n- a\n- b\n---\n", "x.md, line 2: front matter is a list"),
        ("---\ntitle: x\naccess: restricted\n\nbody", "x.md, line 1: .* is never closed"),
        ('---json\n{"access": "restricted"}\n---\n', "x.md, line 1: front matter of the kind ---j"),
        ("+++\naccess = 'restricted'\n+++\n", r"x.md, line 1: front matter of the kind \+\+\+"),
        (f"---\nx: {'[' * 5000}\n---\n", "x.md, line 2: not YAML: nested too deeply"),
        (f"---\nx: {'a' * 70_000}\n---\n", "front matter of more than 65,536 characters"),
    ],
)
def test_front_matter_that_cannot_be_read_is_refused_by_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        read(text, "x.md")
    assert caught.value.reason == "FRONT_MATTER_INVALID"


def test_nothing_in_front_matter_is_executed() -> None:
    found = read("---\nx: !!python/object/apply:os.abort []\ntitle: kept\n---\n", "x.md")
    assert found.given.title == "kept"


def test_lines_above_the_opener_are_counted() -> None:
    assert refusal("\n\n---\naccess: no\n---\n").message.startswith("x.md, line 4: access")
