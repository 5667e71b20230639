from pathlib import Path

import grpc
import pytest

from chassis import channels, serve

(ENGINE,) = Path(grpc.__file__).parent.glob("_cython/cygrpc*.so")
NAMES = [name for name, _ in (*serve._SERVER_OPTIONS, *channels._OPTIONS)]


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_one_that_grpc_knows_for_it_passes_over_others(name: str) -> None:
    assert b"%s\0" % name.encode() in ENGINE.read_bytes()
