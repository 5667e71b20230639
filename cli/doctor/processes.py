"""Whether the suite's own processes answer and are ready."""

import time
from email.utils import parsedate_to_datetime

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis import channels, status
from chassis.certificates import Certificates
from chassis.health import READINESS
from chassis.settings import PREFIX
from cli.doctor.finding import Finding, ok, problem
from cli.doctor.parts import LIMIT, Clock, clocks
from cli.doctor.setup import Setup
from gateway.settings import GatewaySettings

STAGES = ("ingest", "retrieve", "assemble", "generate")
DATE_STEP = 1.0  # seconds: an HTTP date is that exact


async def stages(setup: Setup) -> list[Finding]:
    settings = setup.of(GatewaySettings)
    if settings is None:
        return []
    return [
        await stage(name, getattr(settings, f"{name}_target"), settings.certificates)
        for name in STAGES
        if setup.is_there(f"{name.upper()}_TARGET")
    ]


async def stage(name: str, target: str, certificates: Certificates | None) -> Finding:
    """Ready, or what the stage's own log will tell more of."""
    service = "grpc.health.v1.Health"
    async with channels.connect(
        target, service=service, idempotent=False, certificates=certificates
    ) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        try:
            found = await check(health_pb2.HealthCheckRequest(service=READINESS), timeout=LIMIT)
        except grpc.aio.AioRpcError as error:
            why = status.distrust(error) or "nothing answers"
            mend = f"start it, or mend {PREFIX}{name.upper()}_TARGET and {PREFIX}TLS_..."
            return problem(name, f"{why} at {target}", mend)
    if found.status != health_pb2.HealthCheckResponse.SERVING:
        return problem(name, "is not ready", "look for dependency_down in its log")
    return ok(name, "ready")


async def gateway(setup: Setup, url: str, clock: Clock = time.time) -> list[Finding]:
    if not setup.is_local or setup.running is None:
        return []
    try:
        async with httpx.AsyncClient(timeout=LIMIT, trust_env=False) as client:
            reply = await client.get(f"{url}/healthz")
            now = clock()
            said = reply.json()
            theirs = parsedate_to_datetime(reply.headers["date"]).timestamp()
    except (httpx.HTTPError, ValueError, KeyError):
        mend = f"start it, or mend {PREFIX}GATEWAY_URL"
        return [problem("gateway", f"nothing answers as a gateway at {url}", mend)]
    clock_found = clocks("clock of gateway", theirs + DATE_STEP / 2 - now, DATE_STEP)
    if down := ", ".join(said.get("down", ())):
        return [problem("gateway", f"{said['status']}; down: {down}", "mend these"), clock_found]
    return [ok("gateway", "ready"), clock_found]
