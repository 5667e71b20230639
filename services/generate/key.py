"""What makes two questions the same: everything that an answer could depend on."""

import hashlib
import hmac
from collections.abc import Iterator

from services.generate.candidate import Candidate
from services.generate.qualification import SCHEMA_VERSION
from services.generate.task import Task

LENGTH_BYTES = 8


def key(secret: bytes, task: Task, candidate: Candidate, validation: str) -> str:
    """The same only for the same tenant, evidence, candidate and rules; nothing can be read back.

    Each part is preceded by its length, so that no two lists of parts are one text.
    """
    digest = hmac.new(secret, digestmod=hashlib.sha256)
    for part in _parts(task, candidate, validation):
        data = part.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(LENGTH_BYTES, "big") + data)
    return digest.hexdigest()


def _parts(task: Task, candidate: Candidate, validation: str) -> Iterator[str]:
    schema = SCHEMA_VERSION if candidate.schema is not None else ""
    yield from (task.tenant, candidate.endpoint.id, candidate.fingerprint, schema, validation)
    yield from (task.instructions_version, task.question)
    yield str(len(task.messages))
    for message in task.messages:
        yield from (message.role.value, message.content)
    # What marks were admitted and judged by.
    for source in task.sources:
        yield from (source.label, source.text)
