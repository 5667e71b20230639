import errno
import io
import json
import subprocess
import sys

from chassis.logs import Output

PROGRAM = """
import logging
import structlog
from chassis import logs
from chassis.errors import NotFound

logs.start("retrieve", "info")
structlog.get_logger().info("started", port=1)
try:
    try:
        int("somebody's text")
    except ValueError as error:
        raise NotFound("no such number") from error
except NotFound:
    structlog.get_logger().exception("failed")
try:
    raise ExceptionGroup("somebody's texts", [ValueError("somebody's text")])
except ExceptionGroup:
    logging.getLogger("library").exception("a library's %s", "words")
structlog.get_logger().debug("unheard")
logging.getLogger("library").info("what passes through it")
logging.getLogger("library").setLevel("DEBUG")
logging.getLogger("library").debug("what passes through it")
"""


class FullDisk(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")


def test_our_lines_and_the_libraries_are_json_of_one_shape() -> None:
    program = [sys.executable, "-c", PROGRAM]
    written = subprocess.run(program, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in written.stderr.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("started", "info"),
        ("failed", "error"),
        ("a library's words", "error"),
    ]
    assert {line["process"] for line in lines} == {"retrieve"}
    assert lines[0]["port"] == 1
    assert lines[1]["exception"].endswith("chassis.errors.NotFound: no such number")
    assert "\nValueError\n" in lines[1]["exception"]
    assert lines[2]["exception"].endswith("\nExceptionGroup")
    assert "somebody's" not in written.stderr
    assert all(line["time"].endswith("Z") for line in lines)


def test_lines_that_cannot_be_written_fail_nobody() -> None:
    output = Output(FullDisk())
    assert output.write("a line") == 0


def test_logs_load_no_console_and_leave_it_to_whoever_wants_one() -> None:
    code = "import sys, chassis.logs; print('rich' in sys.modules); import rich.console"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["False"]
