"""Lets this process import Qdrant's gRPC messages without the client around them.

The package `qdrant_client` imports its whole REST client, which costs every start of the node 3 s
of processor time and 70 MB. An empty package in its place still finds `qdrant_client.grpc`.
"""

import sys
from importlib.util import find_spec, module_from_spec

spec = find_spec("qdrant_client")
if spec is not None and "qdrant_client" not in sys.modules:
    sys.modules["qdrant_client"] = module_from_spec(spec)
