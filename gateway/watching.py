"""The routes that tell how the gateway is. None of them is refused for want of room."""

from fastapi import APIRouter, Request, Response

from gateway.door import REFUSALS, SIGNED, Door, needs, responding
from gateway.schema import CapacityResponse, HealthResponse, StatusResponse

OPERATOR = "operator"


def router(door: Door) -> APIRouter:
    router = APIRouter()

    @router.get(
        "/v1/capacity", response_model=CapacityResponse, responses=REFUSALS, openapi_extra=SIGNED
    )
    async def capacity(request: Request) -> Response:
        """What is left of every allowance, for the role operator. Never refused for want of it."""
        needs(OPERATOR, await door.caller(request.headers))
        return responding(
            CapacityResponse.of(await door.levels.of_room(), await door.levels.of_pools())
        )

    @router.get("/v1/status", response_model=StatusResponse)
    async def status() -> Response:
        """What can be had now, for anybody. Costs nothing and is never refused."""
        return responding(StatusResponse(**door.parts.available()))

    @router.head("/healthz", include_in_schema=False)
    @router.get(
        "/healthz", response_model=HealthResponse, responses={503: {"model": HealthResponse}}
    )
    async def health() -> Response:
        """Whether this process takes questions. Costs nothing and is never refused."""
        down = door.parts.down()
        if not door.parts.ready:
            return responding(HealthResponse(status="unready", down=down), 503)
        return responding(HealthResponse(status="degraded" if down else "ok", down=down))

    return router
