import random
import string

import pytest

from chassis.errors import InvalidInput
from services.ingest.guard import refuse_credentials
from services.ingest.stop import NEVER, Stop, Stopped

UPPER = string.ascii_uppercase + "234567"
WORD = string.ascii_letters + string.digits
BASE64 = f"{WORD}+/"


def made(count: int, letters: str = WORD) -> str:
    """Random, so that none is anybody's; put together here, so that no scanner finds it there."""
    return "".join(random.Random(count).choices(letters, k=count))


KEY = "\n".join(made(64 - number, BASE64) for number in range(12))
CREDENTIALS = {
    "private-key": f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----",
    "aws-access-key-id": f"AKIA{made(16, UPPER)}",
    "aws-access-token": f"aws_access_key_id=AKIA{made(16, UPPER)}\nkey={made(40, BASE64)}",
    "github-pat": f"ghp_{made(36)}",
    "gitlab-pat": f"glpat-{made(20)}",
    "slack-bot-token": f"xoxb-{made(12, string.digits)}-{made(13, string.digits)}-{made(24)}",
    "stripe-access-token": f"sk_live_{made(24)}",
    "anthropic-api-key": f"sk-ant-api03-{made(93)}AA",
    "curl-auth-user": f"curl -u admin:{made(16)} https://api.skarholm.io/v1",
    "address": f"postgres://app:{made(18)}@db.intern:5432/app",
    "assigned": f'password = "{made(20)}"',
}


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_credential_is_refused_by_line_and_kind_and_never_shown(kind: str) -> None:
    credential = CREDENTIALS[kind]
    with pytest.raises(InvalidInput) as refusal:
        refuse_credentials(f"# Access\n\nUse this:\n\n{credential}\n", "x.md", NEVER)
    assert refusal.value.reason == "CREDENTIAL"
    assert refusal.value.metadata["line"] == "5"
    assert refusal.value.message.startswith("x.md, line 5: what looks like a credential (")
    assert "placeholder such as <password>" in refusal.value.message
    shown = f"{refusal.value.message} {refusal.value.metadata} {refusal.value!r}"
    assert not any(part in shown for part in credential.replace('"', " ").split() if len(part) > 8)


def test_every_kind_is_found_by_its_own_rule() -> None:
    found = set()
    for credential in CREDENTIALS.values():
        with pytest.raises(InvalidInput) as refusal:
            refuse_credentials(credential, "x.md", NEVER)
        found.add(refusal.value.metadata["kind"])
    assert found >= set(CREDENTIALS) - {"aws-access-token"}


def test_of_several_the_first_is_named_and_the_rest_counted() -> None:
    text = f"{CREDENTIALS['github-pat']}\n\n{CREDENTIALS['gitlab-pat']}\n"
    with pytest.raises(InvalidInput, match=r"line 1: .*\(github-pat\) and 1 more below"):
        refuse_credentials(text, "x.md", NEVER)


@pytest.mark.parametrize(
    "text",
    [
        "password = <your password>",
        "password: changeme",
        "The password is rotated every 90 days by the on-call engineer of the week.",
        "export API_KEY=${API_KEY}",
        'token: "{{ secrets.DEPLOY_TOKEN }}"',
        "secret: xxxxxxxxxxxxxxxxxxxxxxxx",
        "postgres://app:$PASSWORD@db.intern:5432/app",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "trace 123e4567-e89b-12d3-a456-426614174000",
        "kubectl create secret generic db-credentials --from-file=password.txt",
        "password_reset_url = https://id.skarholm.io/reset",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_what_only_speaks_of_credentials_passes(text: str) -> None:
    refuse_credentials(f"# Access\n\n{text}\n", "x.md", NEVER)
    assert text


def test_scanning_stops_when_it_is_asked_to() -> None:
    stop = Stop()
    stop.ask()
    with pytest.raises(Stopped):
        refuse_credentials("text", "x.md", stop)
