"""The edge between the servicers and the wire: every failure becomes a worded status."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import Message

from local.qdrant_node.errors import Refusal, Unserved, engine_refusal
from local.qdrant_node.log import log

_MESSAGE_LIMIT = 1_000
# Where a method stands that our servicers leave as it was.
GENERATED = "qdrant_client.grpc."

Behaviour: TypeAlias = "Callable[[Message, grpc.aio.ServicerContext[Any, Any]], Message]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Boundary(grpc.aio.ServerInterceptor):
    """Runs Qdrant's methods, which are plain functions: the engine blocks the event loop anyway."""

    def __init__(self) -> None:
        self._made: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        name = handler_call_details.method
        if (made := self._made.get(name)) is not None:
            return made
        handler = await continuation(handler_call_details)
        if handler is None or not name.startswith("/qdrant."):
            return handler
        return self._made.setdefault(name, _bounded(name.removeprefix("/qdrant."), handler))


def _bounded(method: str, handler: Any) -> Handler:  # noqa: ANN401 -- as gRPC types its behaviours
    is_ours = not handler.unary_unary.__module__.startswith(GENERATED)
    return grpc.unary_unary_rpc_method_handler(
        _served(method, handler.unary_unary if is_ours else _unserved(method)),
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def _unserved(method: str) -> Behaviour:
    """Stands for what the contract has and we have not."""

    def refuse(_request: Message, _context: grpc.aio.ServicerContext[Any, Any]) -> Message:
        raise Unserved(method)

    return refuse


def _served(method: str, behaviour: Behaviour) -> Callable[..., Awaitable[Message]]:
    async def serve(request: Message, context: grpc.aio.ServicerContext[Any, Any]) -> Message:
        started = time.perf_counter()
        try:
            response = behaviour(request, context)
        # The process's edge: a panic of the engine, which is no Exception, ends the call alone.
        except BaseException as failure:  # noqa: BLE001 -- as above
            refusal = _refusal(method, failure)
            await context.abort(refusal.status, str(refusal)[:_MESSAGE_LIMIT])
        if "time" in response.DESCRIPTOR.fields_by_name:
            response.time = time.perf_counter() - started  # type: ignore[attr-defined] # checked
        return response

    return serve


def _refusal(method: str, failure: BaseException) -> Refusal:
    if isinstance(failure, Refusal):
        return failure
    if refusal := engine_refusal(failure):
        return refusal
    if isinstance(failure, (KeyboardInterrupt, SystemExit)):
        raise failure
    _log_fault(method, failure)
    return Refusal("Service internal error: see the node's log")


def _log_fault(method: str, failure: BaseException) -> None:
    # Of our own faults only the type and the place are told: their texts may quote a payload.
    engine_text = str(failure) if type(failure) is Exception else None
    place = traceback.format_tb(failure.__traceback__)[-1].strip()
    fault = type(failure).__name__
    log("request failed", level="error", method=method, fault=fault, detail=engine_text, at=place)
