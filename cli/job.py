"""`sluice job`: how far a queued question is, and its answer once there is one."""

from cli import exits
from cli.answer import show
from cli.gateway_service import Job, job
from cli.output import Output

ENDED = {"done", "failed", "expired", "cancelled", "superseded"}


async def run(url: str, token: str, job_id: str, output: Output, *, cancel: bool) -> int:
    """Exit code 1 while it has not ended, and when it ended without an answer."""
    found = await job(url, token, job_id, cancel=cancel)
    if found.answer:
        show(output, found.answer)
    output.line(described(found), style="bold")
    output.document(found.raw)
    return exits.OK if found.state == "done" or cancel else exits.INCOMPLETE


def described(found: Job) -> str:
    reason = f", {found.reason}" if found.reason else ""
    successor = found.raw["superseded_by"]
    instead = f", see {successor}" if successor else ""
    later = "" if found.state in ENDED else f"; it expires at {found.raw['expires_at']}"
    return f"job {found.state}{reason}{instead}{later}"
