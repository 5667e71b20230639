import time
from contextlib import suppress
from itertools import pairwise

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
        ("access_levels: restricted", "access_levels", "unknown; 'access' is how it is written"),
        ("accessControl: x", "accessControl", "unknown; 'access' is how it is written"),
        ("\u0430ccess: restricted", "\u0430ccess", "unknown; 'access' is how it is written"),
        ("\uff41ccess: restricted", "\uff41ccess", "unknown; 'access' is how it is written"),
        ("visibility: private", "visibility", "unknown; 'access' is how it is written"),
        ("permissions: [sre]", "permissions", "unknown; 'groups' is how it is written"),
        ("Group IDs: [sre]", "Group IDs", "unknown; 'groups' is how it is written"),
        ("state: draft", "state", "unknown; 'publication_state' is"),
        ("publication: draft", "publication", "unknown; 'publication_state' is"),
        ("Draft: true", "Draft", "unknown; 'publication_state' is"),
        ("draft: maybe", "draft", "expected true or false"),
        ("meta: {access: restricted}", "access", "not read in here; 'access' belongs further out"),
        ("meta: [{a: {groups: [sre]}}]", "groups", "not read in here; 'groups' belongs"),
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
        (f"---\nx: {'[' * 5000}\n---\n", "x.md, line 2: (nested more than 20|not YAML: .*nest)"),
        (f"---\ny: 1\nx: {'[' * 100}\n---\n", "x.md, line 3: nested more than 20 deep"),
        (f"---\nx: {'a' * 17_000}\n---\n", "front matter of more than 16,384 characters"),
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


def test_a_quoted_name_with_blanks_is_refused() -> None:
    assert "'access' is how it is written" in refusal('---\n" access ": restricted\n---\n').message


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("draft: true", State.DRAFT),
        ("draft: Yes", State.DRAFT),
        ("published: false", State.DRAFT),
        ("draft: true\npublication_state: draft", State.DRAFT),
        ("draft: false\npublication_state: draft", State.DRAFT),
        ("draft: false", None),
        ("draft:", None),
        ("published: true", None),
        ("published: 2026-01-02", None),
        ("publication_date: 2026-01-02", None),
    ],
)
def test_what_other_tools_call_a_draft_is_one(line: str, state: State | None) -> None:
    assert read(f"---\n{line}\n---\nbody", "x.md").given.state is state


def test_a_draft_that_is_published_is_refused() -> None:
    error = refusal("---\npublication_state: published\ndraft: true\n---\n")
    assert error.message == "x.md, line 3: draft: contradicts publication_state"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\naccess:restricted\n---\nbody", 2),
        ("---\naccess\uff1arestricted\n---\nbody", 2),
        (" ---\naccess: restricted\n---\nbody", 2),
        ("\t---\naccess: restricted\n---\nbody", 2),
        ("\u200b---\naccess: restricted\n---\nbody", 2),
        ("\ufeff---\naccess: restricted\n---\nbody", 2),
        ("\x0b---\naccess: restricted\n---\nbody", 2),
        ("\x0c---\naccess: restricted\n---\nbody", 2),
        (" \n\n---\naccess: restricted\n---\nbody", 4),
        ("<!-- licence\nof two lines -->\n---\naccess: restricted\n---\nbody", 4),
        ("----\naccess: restricted\n----\nbody", 2),
        ("--- # ours\naccess: restricted\n---\nbody", 2),
        ("\u2014\naccess: restricted\n\u2014\nbody", 2),
        ("\u2014-\naccess: restricted\n\u2014-\nbody", 2),
        ("---\u2028access: restricted\u2028---\u2028body", 1),
        ("---\x85access: restricted\x85---\x85body", 1),
        ("---\n# ours\naccess: restricted\n\nbody", 3),
        ("---\n\naccess: restricted\n\nbody", 3),
        ('---\n"access": restricted\n\nbody', 2),
        ("---\n\n" + 'title: "x"\n' * 30 + "groups: [sre]\n", 33),
        ("+++\naccess = 'restricted'\n\nbody", 2),
        ('{\n  "access": "restricted"\n}\nbody', 2),
        ("access: restricted\n\n# Disk\n", 1),
        ("title: Disk\ngroups: [sre, dba]\n\n# Disk\n", 2),
        ("# Disk\n\n---\ntitle: x\naccess: restricted\n---\nbody", 5),
        ("---\ntitle: x\n---\n---\naccess: restricted\n---\nbody", 5),
        ("---\n---\n\n---\ndraft: true\n---\nbody", 5),
        ("---\npublished:false\n---\nbody", 2),
        ("---\n\u0430ccess:restricted\n---\nbody", 2),
    ],
)
def test_who_may_read_is_never_taken_for_text(text: str, line: int) -> None:
    error = refusal(text)
    assert error.reason == "FRONT_MATTER_INVALID"
    assert error.message.startswith(f"x.md, line {line}: ")


@pytest.mark.parametrize(
    "text",
    [
        "# Disk\n\nAccess: by VPN.\nGroup: everybody on call\n",
        "Access: ask the people who run the store for a key of your own.\n\nThen open it.",
        "# Front matter\n\n```\n---\naccess: restricted\n---\n```\n",
        "# Disk\n\n---\n\nThe state: bad.\nAccess: lost\n\n---\n\nmore",
        "# Disk\n\n---\naccess: restricted",
        "---\ntitle: x\n---\nState: full\n\n---\n\nText: here.",
        "---\ntitle: Accessibility\naccessible: true\nstateful: yes\n---\n",
        "---\n# access: restricted\ntitle: x\n---\n",
        "---\ndescription: |\n  access: none\n---\n",
        "| state | access |\n|---|---|\n| a: b | c |\n",
        "a\n" * 50 + "---\naccess: restricted\n---\n",
    ],
)
def test_ordinary_documents_are_not_taken_for_front_matter(text: str) -> None:
    assert read(text, "x.md").given.access is None


@pytest.mark.parametrize(
    "source",
    [
        "a: " + "[" * 16_000,
        "".join(f"k{number}: 1\n" for number in range(1_700)),
        "".join(f"k{number}: &a{number} 1\n" for number in range(1_000)),
        "".join(f"k{n}: &a{n} [{'*a' + str(n - 1) + ', ' if n else ''}x]\n" for n in range(500)),
        "a: &a [x, x]\n"
        + "".join(
            f"{b}: &{b} [{'*' + a + ', ' * 1}*{a}]\n"
            for a, b in pairwise("abcdefghijklmnopqrstuvwxyz")
        ),
    ],
)
def test_no_front_matter_takes_long(source: str) -> None:
    began = time.process_time()
    with suppress(InvalidInput):
        read(f"---\n{source}\n---\nbody", "x.md")
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "text",
    [
        "'" * 39_000,
        "-" * 39_000 + ":",
        "a" + " " * 39_000 + "b",
        "---\n" + ("{ " * 400 + "\n") * 40,
        "<!--" * 250_000,
        "<!---->" * 150_000,
    ],
)
def test_no_head_takes_long(text: str) -> None:
    began = time.process_time()
    assert read(text, "x.md").body == 0
    assert time.process_time() - began < 1
