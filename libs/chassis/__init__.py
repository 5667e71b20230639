"""How a process runs: settings, identity, deadlines, errors, channels, serving, telemetry."""

import os

# gRPC writes lines of its own among the JSON logs whenever a connection ends. It reads this once,
# when it is imported, which is after this package.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
