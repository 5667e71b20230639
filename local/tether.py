"""Becomes a command that dies with its parent: `python -I -S tether.py PARENT_PID NICE COMMAND...`.

The kernel does it, so that it holds even when the parent is killed with SIGKILL. Linux only:
elsewhere the command runs, but outlives such a parent. NICE is added to its own niceness.
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1
EXIT_PARENT_GONE = 4


def main() -> None:
    parent, nice, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    os.nice(nice)
    if sys.platform == "linux":
        _die_with(parent)
    os.execv(command[0], command)  # noqa: S606 - the command comes from the supervisor


def _die_with(parent: int) -> None:
    import ctypes  # noqa: PLC0415 - costs 10 ms where it is of no use

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A parent that died before the line above sends no signal any more.
    if os.getppid() != parent:
        raise SystemExit(EXIT_PARENT_GONE)


if __name__ == "__main__":
    main()
