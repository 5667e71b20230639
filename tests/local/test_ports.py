import contextlib
import socket

import pytest

from local import ports
from local.failures import Refused


def test_settings_choose_ports_and_defaults_fill_in() -> None:
    chosen = ports.told({"SLUICE_INGEST_PORT": "6001", "SLUICE_REDIS_PORT": "6002"})
    assert chosen == {**ports.DEFAULTS, "ingest": 6001, "redis": 6002}


@pytest.mark.parametrize("text", ["", "http", "0", "65536", "-1", "8_080", "\u0663"])
def test_what_is_no_port_is_refused_by_name_with_an_example(text: str) -> None:
    with pytest.raises(Refused, match=r"SLUICE_MODELS_PORT: .* SLUICE_MODELS_PORT=8090"):
        ports.told({"SLUICE_MODELS_PORT": text})


def test_a_taken_port_is_named_with_the_setting_that_changes_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Refused) as refusal:
            ports.check({"retrieve": port})
    said, _, example = refusal.value.message.rpartition("=")
    assert said == (
        f"port {port} for retrieve is in use: free it or set another one,"
        " for example SLUICE_RETRIEVE_PORT"
    )
    assert ports.is_free(int(example))


def test_a_port_set_twice_is_refused() -> None:
    port = ports.free(1)[0]
    with pytest.raises(Refused, match=f"port {port} is set for ingest and retrieve"):
        ports.check({"ingest": port, "retrieve": port})


def test_redis_moves_when_its_default_is_taken_but_not_from_where_it_was_set() -> None:
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            held.enter_context(socket.create_server(("127.0.0.1", ports.DEFAULTS["redis"])))
        moved = ports.chosen({})
        asked = ports.chosen({"SLUICE_REDIS_PORT": "6379"})
    assert moved["redis"] != ports.DEFAULTS["redis"]
    assert asked["redis"] == ports.DEFAULTS["redis"]


def test_free_ports_are_free_and_all_different() -> None:
    chosen = ports.all_free()
    assert set(chosen) == set(ports.DEFAULTS)
    assert len(set(chosen.values())) == len(chosen)
    ports.check(chosen)
