"""Events as lines of JSON on standard error."""

import json
import sys
from datetime import UTC, datetime


def log(event: str, *, level: str = "info", **fields: str | int | None) -> None:
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    record = {"timestamp": time, "level": level, "event": event, **fields}
    print(json.dumps(record, ensure_ascii=False), file=sys.stderr, flush=True)  # noqa: T201
