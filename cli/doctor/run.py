"""All checks at once, what they found in the order of the parts, and the exit code."""

import asyncio
from dataclasses import asdict
from pathlib import Path

from cli import addresses, exits
from cli.doctor import machine, parts, processes, setup
from cli.doctor.finding import Finding, State
from cli.output import Output

STYLES = {State.OK: "green", State.WARNING: "yellow", State.PROBLEM: "bold red"}


async def run(data: Path, names: tuple[str, ...], output: Output) -> int:
    """Show the findings. Exit code 1 where there is a problem. Raises Refused."""
    findings = await examined(data, names)
    for finding in findings:
        output.line(f"{finding.state:<8} {finding.part}: {finding.said}", STYLES[finding.state])
        if finding.mend:
            output.line(f"{'':<8} mend: {finding.mend}")
    output.document({"findings": [asdict(finding) for finding in findings]})
    problems = [finding for finding in findings if finding.state is State.PROBLEM]
    output.line(f"{len(problems)} problems in {len(findings)} findings")
    return exits.INCOMPLETE if problems else exits.OK


async def examined(data: Path, names: tuple[str, ...]) -> list[Finding]:
    """Of the processes named, of all without a name. Raises Refused."""
    told = setup.read(data, names)
    looked = await asyncio.gather(
        parts.redis(told),
        parts.jobs(told),
        parts.index(told),
        parts.embeddings(told),
        parts.outside(told),
        processes.stages(told),
        processes.gateway(told, addresses.gateway(data)),
    )
    found = [finding for each in looked for finding in each]
    return [*told.findings, *machine.look(told), *found]
