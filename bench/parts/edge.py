"""The echo behind all that stands before a stage: interceptors, identity, deadline, telemetry."""

import argparse
from functools import partial

from grpc_health.v1.health_pb2 import DESCRIPTOR

from bench.parts.echo import add
from chassis.identity import Caller, Verifier, verifying_key
from chassis.serve import Service, run, serve
from chassis.settings import StageSettings, load

LIMIT = 30  # seconds
# What is added needs the contract of some service, and the echo has none.
(CONTRACT,) = (service.full_name for service in DESCRIPTOR.services_by_name.values())


async def process(port: int, stage: str, settings: StageSettings) -> None:
    verifier = Verifier(verifying_key(settings.internal_verify_key), stage)

    async def verify(token: str) -> Caller:
        return verifier.verify(token)

    await serve(port, settings, services=[Service(CONTRACT, add)], verify=verify, limit=LIMIT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--stage", required=True, help="whose tokens are taken")
    given = parser.parse_args()
    settings = load(StageSettings)
    run("echo", settings, partial(process, given.port, given.stage, settings))


if __name__ == "__main__":
    main()
