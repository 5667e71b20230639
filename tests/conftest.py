"""What tests of every part need: free ports and processes that end with the test."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

SUITE = Path(__file__).with_name("suite")


def pytest_configure(config: pytest.Config) -> None:
    """A change is tried on the same examples each time; the soak looks for new ones."""
    if config.option.markexpr != "soak":
        settings.register_profile("same", derandomize=True)
        settings.load_profile("same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files are not divided between workers, since their processes are shared within a file.

    The suite's files share one running suite; it takes longest, hence begins first.
    """
    items.sort(key=lambda item: SUITE not in item.path.parents)
    for item in items:
        group = SUITE if SUITE in item.path.parents else item.path
        item.add_marker(pytest.mark.xdist_group(str(group)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests measured."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if report.when == "call":
                terminalreporter.write_line(f"{name}: {value:.1%}")


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A port that was free a moment ago."""

    def find() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            return port

    return find
