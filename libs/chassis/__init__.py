"""How a process runs: settings, identity, deadlines, errors, channels, serving, telemetry."""

import os
import sys

# gRPC writes lines of its own among the JSON logs whenever a connection ends. It reads this once,
# when it is imported, which is after this package.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# structlog takes rich along for a console that no process of ours writes to: 6 MB and a tenth of a
# second of each. The command line, which has one, imports rich by itself.
if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment] # as the import system says "not to be had"
    import structlog  # noqa: F401 - so that it is loaded by now

    del sys.modules["rich"]
