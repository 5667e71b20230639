"""What stands before every RPC of a server: identity, deadline, and errors made into statuses."""

from __future__ import annotations  # gRPC's classes are generic in their stubs only

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

import grpc
import structlog
from opentelemetry import propagate, trace

from chassis import deadlines, errors, identity, measures, status
from chassis.channels import MESSAGE_BYTES
from chassis.deadlines import Deadline
from chassis.requests import read

# How long a refused caller may pause, and go on in all, until nothing more of it is taken in.
PAUSE_SECONDS = 1.0
REST_SECONDS = 5.0

Verify = Callable[[str], Awaitable[identity.Caller]]
Behaviour: TypeAlias = "Callable[[Any, grpc.aio.ServicerContext[Any, Any]], Awaitable[Any]]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
# From what comes on the wire to what a behaviour takes.
Parsed = Callable[[Any], Any]
TakeRest = Callable[[Any], Awaitable[None]]
Traced: TypeAlias = (
    "Callable[[str, grpc.aio.ServicerContext[Any, Any]], AbstractContextManager[trace.Span]]"
)

# Health checks and reflection come from the platform and carry no token.
OPEN_SERVICES = ("/grpc.health.v1.Health/", "/grpc.reflection.v1alpha.ServerReflection/")

# These say that this side failed; any other code is the caller's affair.
_OUR_FAULT = frozenset(
    {
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)

_tracer = trace.get_tracer("sluice.chassis")

log = structlog.get_logger()


@contextmanager
def _traced(name: str, context: grpc.aio.ServicerContext[Any, Any]) -> Iterator[trace.Span]:
    """The span of a response stream. It ends with the call, whichever way that ends.

    OpenTelemetry's own interceptor iterates the stream in a generator that gRPC drops when the
    caller leaves: its span ends, and the stage's work too, whenever that is collected.
    """
    service, _, method = name.removeprefix("/").partition("/")
    with _tracer.start_as_current_span(
        name,
        propagate.extract(dict(context.invocation_metadata() or ())),
        trace.SpanKind.SERVER,
        {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


@contextmanager
def _as_it_is(name: str, context: grpc.aio.ServicerContext[Any, Any]) -> Iterator[trace.Span]:  # noqa: ARG001 - as above
    """The span that OpenTelemetry's own interceptor made."""
    yield trace.get_current_span()


async def _nothing_left(_request: bytes) -> None:
    """One message has come in as a whole."""


async def _take_rest(requests: AsyncIterator[bytes]) -> None:
    """What a refused caller is still sending, as much as one message may have.

    gRPC's asynchronous client forgets a status that comes while it writes, and says INTERNAL.
    """
    size = 0
    with suppress(StopAsyncIteration, TimeoutError, grpc.aio.InternalError):
        async with asyncio.timeout(REST_SECONDS):
            while size < MESSAGE_BYTES:
                async with asyncio.timeout(PAUSE_SECONDS):
                    size += len(await anext(requests))


class Edge(grpc.aio.ServerInterceptor):
    """Wraps each handler. `limit` caps, in seconds, what callers may ask for."""

    def __init__(self, verify: Verify, limit: float) -> None:
        self._verify = verify
        self._limit = limit
        self._running = 0
        self._begun = 0
        self._idle = asyncio.Event()
        self._idle.set()
        measures.idle()

    async def wait_idle(self) -> None:
        """Return once no call is running. Open health and reflection streams do not count."""
        await self._idle.wait()

    async def wait_quiet(self, seconds: float) -> None:
        """Return once no call is running and for so long none has begun."""
        before = None
        while before != self._begun:
            await self.wait_idle()
            before = self._begun
            await asyncio.sleep(seconds)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        handler = await continuation(handler_call_details)
        name = handler_call_details.method
        if handler is None:
            return None
        if name.startswith(OPEN_SERVICES):
            return _open(handler)
        one, all_of = _one(handler.request_deserializer), _all_of(handler.request_deserializer)
        written = handler.response_serializer
        if handler.unary_unary:
            guarded = self._guarded(name, _reading(handler.unary_unary, one))
            return grpc.unary_unary_rpc_method_handler(guarded, None, written)
        if handler.stream_unary:
            behaviour = _reading(handler.stream_unary, all_of)
            guarded = self._guarded(name, behaviour, take_rest=_take_rest)
            return grpc.stream_unary_rpc_method_handler(guarded, None, written)
        if handler.unary_stream:
            guarded = self._guarded(name, _writing(handler.unary_stream, one), _traced)
            return grpc.unary_stream_rpc_method_handler(guarded, None, written)
        raise TypeError(f"{name}: streams in both directions need a guard of their own")

    def _guarded(
        self,
        name: str,
        behaviour: Any,  # noqa: ANN401 - gRPC's own types say Any
        traced: Traced = _as_it_is,
        take_rest: TakeRest = _nothing_left,
    ) -> Any:  # noqa: ANN401 - as above
        async def guarded(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:  # noqa: ANN401
            with traced(name, context) as span, measures.served(name.removeprefix("/")) as call:
                try:
                    with self._counted():
                        return await self._admitted(behaviour, request, context)
                except errors.SluiceError as error:
                    failure = error
                except grpc.aio.InternalError:
                    # Nobody is there to send to: this task's cancellation is on its way.
                    log.info("caller_left", method=name)
                    call.code = grpc.StatusCode.CANCELLED.name
                    return None
                except (Exception, asyncio.CancelledError) as error:  # the edge of the process
                    if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                        raise
                    # What leaves as it is becomes UNKNOWN; a cancellation that nobody asked for is
                    # never answered at all.
                    log.exception("rpc_failed", method=name)
                    failure = errors.Internal("internal error; the log has the details")
                log.info("rpc_refused", method=name, reason=failure.reason)
                call.code = status.code_of(failure).name
                _tell_failure(span, failure)
                await take_rest(request)
                await context.abort_with_status(status.encode(failure))
                return None

        return guarded

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._running += 1
        self._begun += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running -= 1
            if self._running == 0:
                self._idle.set()

    async def _admitted(
        self, behaviour: Behaviour, request: object, context: grpc.aio.ServicerContext[Any, Any]
    ) -> Any:  # noqa: ANN401 - whatever the behaviour returns
        deadline = self._deadline(context)
        identity.enter(await self._verify(bearer_token(context)))
        deadlines.enter(deadline)
        try:
            async with asyncio.timeout(max(deadline.remaining(), 0)) as limit:
                return await behaviour(request, context)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise errors.DeadlineExceeded("the time for this request is over") from error

    def _deadline(self, context: grpc.aio.ServicerContext[Any, Any]) -> Deadline:
        asked = context.time_remaining()  # None without a deadline
        return Deadline.after(self._limit if asked is None else min(asked, self._limit))


def _is_cancelled() -> bool:
    """Whether somebody cancelled the running task, not just something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _tell_failure(span: trace.Span, failure: errors.SluiceError) -> None:
    code = status.code_of(failure)
    span.set_attribute("rpc.grpc.status_code", code.value[0])
    if code in _OUR_FAULT:
        span.set_status(trace.StatusCode.ERROR, code.name)


def _open(handler: Handler) -> Handler:
    """Health or reflection as it is, but for bytes that are no request."""
    one, all_of = _one(handler.request_deserializer), _all_of(handler.request_deserializer)
    written = handler.response_serializer
    if handler.unary_unary:
        told = _told(_reading(handler.unary_unary, one))
        return grpc.unary_unary_rpc_method_handler(told, None, written)
    if handler.unary_stream:
        told = _told(_writing(handler.unary_stream, one))
        return grpc.unary_stream_rpc_method_handler(told, None, written)
    told = _told(_writing(handler.stream_stream, all_of))
    return grpc.stream_stream_rpc_method_handler(told, None, written)


def _told(behaviour: Behaviour) -> Any:  # noqa: ANN401 - gRPC's own types say Any
    async def told(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:  # noqa: ANN401
        try:
            return await behaviour(request, context)
        except errors.InvalidInput as error:
            await context.abort_with_status(status.encode(error))

    return told


def _one(parse: Any) -> Parsed:  # noqa: ANN401 - gRPC's own types say Any
    return partial(read, parse)


def _all_of(parse: Any) -> Parsed:  # noqa: ANN401 - as above
    def parsed(raw: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        return (read(parse, message) async for message in raw)

    return parsed


def _reading(behaviour: Any, parsed: Parsed) -> Behaviour:  # noqa: ANN401 - as above
    async def answered(raw: object, context: grpc.aio.ServicerContext[Any, Any]) -> Any:  # noqa: ANN401
        return await behaviour(parsed(raw), context)

    return answered


def _writing(behaviour: Any, parsed: Parsed) -> Behaviour:  # noqa: ANN401 - as above
    """A response stream as one task: a caller that leaves cancels it and its generator at once.

    Left to gRPC, a generator that is not waiting just then is dropped, to be collected later.
    """

    async def written(raw: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        async with aclosing(behaviour(parsed(raw), context)) as responses:
            async for response in responses:
                await context.write(response)

    return _reading(behaviour, parsed) if asyncio.iscoroutinefunction(behaviour) else written


def bearer_token(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The bearer token of a call. Raises Unauthenticated when there is none."""
    for key, value in context.invocation_metadata() or ():
        if key == "authorization" and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            if scheme.lower() == "bearer" and token:
                return token
    raise errors.Unauthenticated("no bearer token in the authorization metadata")
