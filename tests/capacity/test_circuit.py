"""When attempts stop making sense, and who finds out that they do again."""

from dataclasses import dataclass

import pytest

from capacity import CapacityCircuitOpen, CircuitState, Reservation, Workload
from capacity.circuit import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, Circuit
from chassis.errors import Unavailable


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def circuit(clock: Clock) -> Circuit:
    return Circuit(clock)


def attempt() -> Reservation:
    return Reservation(Workload.INTERACTIVE, 1)


def is_admitted(circuit: Circuit) -> bool:
    try:
        circuit.admit(attempt())
    except CapacityCircuitOpen:
        return False
    return True


def fail(circuit: Circuit, times: int) -> None:
    for _ in range(times):
        circuit.failed()


def test_several_failures_in_a_row_open_it(circuit: Circuit) -> None:
    fail(circuit, FAILURES - 1)
    assert is_admitted(circuit)
    fail(circuit, 1)
    assert circuit.state is CircuitState.OPEN
    with pytest.raises(Unavailable) as caught:
        circuit.admit(attempt())
    assert caught.value.reason == "CAPACITY_CIRCUIT_OPEN"
    assert caught.value.retry_after == FIRST_PAUSE


def test_a_success_between_failures_keeps_it_closed(circuit: Circuit) -> None:
    for _ in range(5):
        fail(circuit, FAILURES - 1)
        circuit.succeeded()
    assert is_admitted(circuit)


def test_one_attempt_probes_after_the_pause(circuit: Circuit, clock: Clock) -> None:
    fail(circuit, FAILURES)
    clock.now += FIRST_PAUSE - 0.001
    assert not is_admitted(circuit)
    clock.now += 0.001
    assert [is_admitted(circuit) for _ in range(3)] == [True, False, False]
    assert circuit.state is CircuitState.PROBING


def test_no_time_is_told_while_the_probe_runs(circuit: Circuit, clock: Clock) -> None:
    fail(circuit, FAILURES)
    clock.now += FIRST_PAUSE
    circuit.admit(attempt())
    with pytest.raises(CapacityCircuitOpen) as caught:
        circuit.admit(attempt())
    assert caught.value.retry_after is None


def test_a_probe_that_succeeds_closes_it(circuit: Circuit, clock: Clock) -> None:
    fail(circuit, FAILURES)
    clock.now += FIRST_PAUSE
    circuit.admit(attempt())
    circuit.succeeded()
    assert circuit.state is CircuitState.CLOSED
    assert [is_admitted(circuit) for _ in range(3)] == [True] * 3


def test_a_probe_that_fails_opens_it_for_twice_as_long(circuit: Circuit, clock: Clock) -> None:
    fail(circuit, FAILURES)
    pauses = []
    for _ in range(8):
        with pytest.raises(CapacityCircuitOpen) as caught:
            circuit.admit(attempt())
        pauses.append(caught.value.retry_after)
        clock.now += caught.value.retry_after or 0
        circuit.admit(attempt())
        circuit.failed()
    assert pauses == [min(FIRST_PAUSE * 2**n, LONGEST_PAUSE) for n in range(8)]


def test_failures_of_attempts_begun_before_do_not_prolong_it(
    circuit: Circuit, clock: Clock
) -> None:
    fail(circuit, FAILURES)
    clock.now += FIRST_PAUSE / 2
    fail(circuit, 20)
    clock.now += FIRST_PAUSE / 2
    assert is_admitted(circuit)


def test_a_probe_that_tells_nothing_leaves_room_for_the_next(
    circuit: Circuit, clock: Clock
) -> None:
    fail(circuit, FAILURES)
    clock.now += FIRST_PAUSE
    probe = attempt()
    circuit.admit(probe)
    circuit.ended(attempt())
    assert not is_admitted(circuit)
    circuit.ended(probe)
    assert is_admitted(circuit)
