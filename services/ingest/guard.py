"""Credentials have no place among passages: a document that holds one is refused."""

import sys
import threading
from pathlib import Path

from kingfisher_sdk import Rules, Scanner

from chassis.errors import InvalidInput
from services.ingest.stop import Stop

OWN_RULES = Path(__file__).with_name("credentials.yaml")
# Compiling the rules takes seconds. What is compiled lies beside the installed packages, as their
# bytecode does, and where that cannot be written it is compiled at every start.
CACHE = Path(sys.prefix) / "share" / "sluice" / "credential-rules"

_loading = threading.Lock()
_loaded: list[Scanner] = []


def refuse_credentials(text: str, name: str, stop: Stop) -> None:
    """Raises InvalidInput (CREDENTIAL) with line and kind, never with what was found."""
    stop.check()
    findings = [finding for finding in _scanner().scan(text) if finding.visible]
    if not findings:
        return
    places = sorted({(finding.location["line"], _kind(finding.rule_id)) for finding in findings})
    line, kind = places[0]
    more = f" and {len(places) - 1} more below" if len(places) > 1 else ""
    raise InvalidInput(
        f"{name}, line {line}: what looks like a credential ({kind}){more}; revoke it if it is"
        " one, and write a placeholder such as <password> in its place",
        field="data",
        reason="CREDENTIAL",
        metadata={"document_id": name, "line": str(line), "kind": kind},
    )


def load() -> None:
    """Have the rules ready, which takes a second or more, before the first document comes."""
    _scanner()


def _kind(rule: str) -> str:
    """The last part of a rule's id, such as github-pat."""
    return rule.rpartition(".")[2].rpartition("/")[2]


def _scanner() -> Scanner:
    with _loading:
        if not _loaded:
            _loaded.append(Scanner(Rules([OWN_RULES], cache_dir=CACHE), redact=True))
        return _loaded[0]
