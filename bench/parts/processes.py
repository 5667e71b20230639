"""What processes use of the machine, as Linux tells it."""

import os
from collections.abc import Iterator
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")  # a second


def cpu_seconds(pid: int) -> float:
    """Processor time of the process and of those that it has started."""
    return sum(_ticks(one) for one in _family(pid)) / TICKS


def megabytes(pid: int, field: str = "VmRSS") -> float:
    """Resident memory; `VmHWM` is the most that it ever was."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kilobytes,) = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return round(int(kilobytes) / 1_024, 1)


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def _ticks(pid: int) -> int:
    # The name in parentheses may hold blanks.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = fields[11:13]
    return int(user) + int(system)
