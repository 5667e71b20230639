"""The routes of documents, for the role ingest. Whose documents they are only the token says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from chassis import errors
from chassis.identity import AccessLevel
from gateway.departure import unless_gone
from gateway.documents import Heading
from gateway.door import CLIENT_GONE, REFUSALS, TIMED, Door, needs, responding
from gateway.question import PublicationState
from gateway.schema import DocumentsResponse, PreviewResponse, StoredResponse
from gateway.upload import Upload
from gateway.wire import MEDIA_TYPES

ROLE = "ingest"
CREATED, NO_CONTENT = 201, 204
# For ingest to let go of a document that breaks off.
LEAVE_SECONDS = 1.0
_ANY = ("", "application/octet-stream")
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in (*MEDIA_TYPES, "application/octet-stream")
        },
    }
}

T = TypeVar("T")
Text = Annotated[str | None, Query()]


class QueryRoute(APIRoute):
    """A route that may read its query, which is kept from everybody else."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def asked(request: Request) -> Response:
            scope = {**request.scope, "query_string": request.state.query_string}
            return await handle(Request(scope, request.receive))

        return asked


def _one_of(words: Iterable[str]) -> Any:  # noqa: ANN401 - as FastAPI's own
    """Published only: what is refused is refused in our words."""
    return Query(json_schema_extra={"enum": [*words, None]})


# Asynchronous, since FastAPI takes a thread for what is not.
async def _heading(  # noqa: PLR0913 - what can be said of a document
    request: Request,
    *,
    document_id: str,
    source: Annotated[str, Query(description="what it belongs to, such as a folder")] = "http",
    title: Text = None,
    version: Text = None,
    area: Text = None,
    document_type: Text = None,
    publication_state: Annotated[str | None, _one_of(PublicationState)] = None,
    access_level: Annotated[str | None, _one_of(level.label for level in AccessLevel)] = None,
    groups: Annotated[list[str], Query(description="of which a reader needs one")] = [],  # noqa: B006 - FastAPI's own way
    uri: Text = None,
) -> Heading:
    return Heading(
        document_id,
        source,
        _media_type(request.headers.get("content-type", "")),
        title,
        version,
        area,
        document_type,
        publication_state,
        access_level,
        tuple(groups),
        uri,
    )


def _media_type(header: str) -> str:
    kind = header.partition(";")[0].strip().lower()
    if kind in _ANY:
        return ""
    if kind not in MEDIA_TYPES:
        raise errors.InvalidInput(
            "documents of this kind are not read; without a kind the id's extension tells it",
            field="Content-Type",
            reason="UNSUPPORTED_FORMAT",
        )
    return kind


Headed = Annotated[Heading, Depends(_heading)]


def router(door: Door) -> APIRouter:
    router = APIRouter(route_class=QueryRoute)
    router.include_router(_uploads(door))

    @router.get(
        "/v1/documents", response_model=DocumentsResponse, responses=REFUSALS, openapi_extra=TIMED
    )
    async def documents(
        request: Request,
        source: str = "",
        page_size: Annotated[int, Query(ge=1, le=1_000)] = 100,
        page_token: str = "",
    ) -> Response:
        """List the live documents of the caller's tenant in order of id."""
        await _enter(door, request)
        page = await door.documents.page(source, page_size, page_token)
        return responding(DocumentsResponse.of(page))

    @router.delete(
        "/v1/documents/{document_id:path}",
        status_code=NO_CONTENT,
        responses=REFUSALS,
        openapi_extra=TIMED,
    )
    async def delete(request: Request, document_id: str) -> Response:
        """Retire a document: no search that begins after this finds it."""
        await _enter(door, request)
        await door.documents.delete(document_id)
        return Response(status_code=NO_CONTENT)

    return router


def _uploads(door: Door) -> APIRouter:
    router = APIRouter(route_class=QueryRoute)

    @router.put(
        "/v1/documents/{document_id:path}",  # noqa: FAST003 - the heading has it
        response_model=StoredResponse,
        responses={CREATED: {"model": StoredResponse}, **REFUSALS},
        openapi_extra={**_BODY, **TIMED},
    )
    async def put(request: Request, heading: Headed) -> Response:
        """Store a document so that searches find it: 201 when it is new.

        The same content and metadata change nothing. Ids may hold slashes.
        """
        await _enter(door, request)
        upload = Upload(request, door.document_bytes)
        done = await _uploaded(upload, lambda parts: door.documents.put(heading, parts))
        if done is None:
            return Response(status_code=CLIENT_GONE)
        stored = StoredResponse.of(done)
        return responding(stored, CREATED if stored.outcome == "added" else 200)

    @router.post(
        "/v1/documents:preview",
        response_model=PreviewResponse,
        responses=REFUSALS,
        openapi_extra={**_BODY, **TIMED},
    )
    async def preview(request: Request, heading: Headed) -> Response:
        """Show the passages that a document would become. Nothing is stored."""
        await _enter(door, request)
        upload = Upload(request, door.document_bytes)
        shown = await _uploaded(upload, lambda parts: door.documents.preview(heading, parts))
        if shown is None:
            return Response(status_code=CLIENT_GONE)
        # As large as the document: others do not wait for it.
        return await asyncio.to_thread(lambda: responding(PreviewResponse.of(shown)))

    return router


async def _enter(door: Door, request: Request) -> None:
    needs(ROLE, await door.enter(request.headers, door.ingest_deadline))


async def _uploaded(
    upload: Upload, hand_on: Callable[[AsyncIterator[bytes]], Awaitable[T]]
) -> T | None:
    """What comes of the upload, or None when the client left. Raises why it broke off."""

    async def work() -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:
                upload.breaks = lambda: limit.reschedule(loop.time() + LEAVE_SECONDS)
                done = await hand_on(upload.parts())
        except (errors.SluiceError, TimeoutError):
            if upload.failure is None:
                raise
        if upload.failure is not None:
            raise upload.failure
        return done

    try:
        return await unless_gone(upload.receive, work())
    except ClientDisconnect:
        return None
