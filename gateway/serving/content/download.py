"""`GET /content/<handle>`: content by a signed link, whole or in part, streamed from the store."""

import logging
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from gateway.content.links.links import Links
from gateway.content.store import ContentStore, Opened
from gateway.errors import (
    BadLink,
    ContentError,
    ExpiredHandle,
    ExpiredLink,
    GatewayError,
    StoreUnavailable,
    UnknownHandle,
)
from gateway.serving.content.content_headers import headers_of
from gateway.serving.content.ranges import Part, is_another, is_known, part_of

logger = logging.getLogger(__name__)

_STATUS: tuple[tuple[type[ContentError], int], ...] = (
    (BadLink, 403),
    (UnknownHandle, 404),
    (ExpiredLink, 410),
    (ExpiredHandle, 410),
    (StoreUnavailable, 503),
    (ContentError, 500),
)
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class _BrokenOff(Exception):
    """The store failed while the content was being sent."""


class Download:
    """An ASGI application. It requires a signed link in place of a token, and checks it before anything else."""

    def __init__(self, store: ContentStore, links: Links) -> None:
        self._store = store
        self._links = links

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        handle = str(request.path_params["handle"])
        response: Response | Part
        try:
            given = request.query_params
            owner = self._links.owner(handle, given.get("expires", ""), given.get("signature", ""))
            response = await self._unopened(request, handle, owner)
            if isinstance(response, Part):
                async with self._store.open(handle, owner=owner, start=response.start, end=response.end) as opened:
                    return await _streamed(opened, response)(scope, receive, send)
        except _BrokenOff as error:
            # The answer stays unfinished, and uvicorn closes the connection, so the client sees that it was cut off.
            logger.warning("content broke off while it was sent: %s", error.__cause__)
            return None
        except ContentError as error:
            response = _refusal(error)
        return await response(scope, receive, send)

    async def _unopened(self, request: Request, handle: str, owner: str) -> Response | Part:
        """Return the answer if it needs no content, or else the part of the content to send."""
        stored = await self._store.metadata(handle, owner=owner)
        headers = headers_of(stored)
        if is_another(request.headers, stored.etag):
            return Response(status_code=412, headers=_SAFE)
        if is_known(request.headers, stored.etag):
            kept = ("ETag", "Cache-Control", "X-Content-Type-Options")
            return Response(status_code=304, headers={key: headers[key] for key in kept})
        if request.method == "HEAD":
            return Response(headers={**headers, "Content-Length": str(stored.size)})
        part = part_of(request.headers, stored.size, stored.etag)
        return part if part.status != 416 else Response(status_code=416, headers={**_SAFE, **part.headers()})


def _streamed(opened: Opened, part: Part) -> Response:
    headers = {**headers_of(opened.stored), **part.headers()}
    return StreamingResponse(_careful(opened), part.status, headers)


async def _careful(opened: Opened) -> AsyncIterator[bytes]:
    try:
        async for chunk in opened:
            yield chunk
    except GatewayError as error:
        raise _BrokenOff from error


def _refusal(error: ContentError) -> Response:
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    return PlainTextResponse(f"{error}\n", status, _SAFE)
