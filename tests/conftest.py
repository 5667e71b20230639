"""What tests of every part need: free ports and processes that end with the test."""

import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

SUITE = Path(__file__).with_name("suite")
OWN_SUITE = ("test_local_llm.py", "test_markers.py")


def pytest_configure(config: pytest.Config) -> None:
    """A change is tried on the same examples each time; the soak looks for new ones.

    That examples are made slowly tells of a busy machine, not of a test.
    """
    # A shell that starts the tests in the background has them and their commands ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile(
        "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile("same", settings.get_profile("patient"), derandomize=True)
    settings.load_profile("patient" if config.option.markexpr == "soak" else "same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The suite's files take longest, hence begin first."""
    items.sort(key=lambda item: SUITE not in item.path.parents)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> "Files":
    return Files(config, log)


class Files(LoadScopeScheduling):  # type: ignore[misc] # untyped
    """Files are not divided between workers, since their processes are shared within a file.

    The suite's files share one running suite, but for those that start one of their own.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        folder = path.rpartition("/")[0]
        shared = folder.endswith(f"tests/{SUITE.name}") and not path.endswith(OWN_SUITE)
        return folder if shared else path


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
