"""`POST /content`: store the body of a request as content while it is being received.

The body is the content itself, of any length, chunked or not. Forms are not accepted: `multipart/form-data` would have
to be written to disk first, and every client that can send a form can send the file alone.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import anyio
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from gateway.content.fetch import clean_name, name_in_disposition, peeked, typed
from gateway.content.links.base_url import BASE_SCOPE, PRINCIPAL_SCOPE, answering_under
from gateway.content.links.content_json import content_as_json
from gateway.content.links.links import Links
from gateway.content.store import ContentStore, Stored
from gateway.core.model.caller import Caller
from gateway.errors import ContentError, ContentTooLarge, StoreUnavailable

logger = logging.getLogger(__name__)

_FORMS = ("multipart/", "application/x-www-form-urlencoded")
_SILENCE_SECONDS = 120
_LINGERING_SECONDS = 5
_LINGERING_BYTES = 64 * 1024 * 1024
_STATUS: tuple[tuple[type[ContentError], int], ...] = (
    (ContentTooLarge, 413),
    (StoreUnavailable, 503),
    (ContentError, 500),
)


class Upload:
    """An ASGI application, called after Host, Origin and token are checked; the scope names the principal."""

    def __init__(self, store: ContentStore, links: Links, max_bytes: int) -> None:
        self._store = store
        self._links = links
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = Body(request, self._max_bytes)
        try:
            response = await self._taken(request, body)
        except ClientDisconnect:
            logger.info("an upload broke off")
            return None
        if response.status_code != 201:
            await body.rest()
        return await response(scope, receive, send)

    async def _taken(self, request: Request, body: "Body") -> Response:
        headers = request.headers
        owner = request.scope.get(PRINCIPAL_SCOPE)
        if owner in (None, Caller().principal):  # that is anyone who can reach the loopback
            words = "uploads need a token, also on this machine: set [http] token, or use `mcp-gateway put`"
            return JSONResponse({"error": words}, 401, {"WWW-Authenticate": "Bearer"})
        declared = headers.get("content-type", "").strip().lower()
        if declared.startswith("multipart/"):
            words = "send the content itself as the body, not a form; its name as ?name= or in Content-Disposition"
            return JSONResponse({"error": words}, 415)
        if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            return JSONResponse({"error": "send the content as it is, without Content-Encoding"}, 415)
        try:
            body.check(headers)
            stored = await self._put(body, owner, None if declared.startswith(_FORMS) else declared, _name(request))
        except TimeoutError:
            return JSONResponse({"error": f"no data was received for {_SILENCE_SECONDS} s"}, 408)
        except ContentError as error:
            status = next(status for kind, status in _STATUS if isinstance(error, kind))
            return JSONResponse({"error": str(error)}, status)
        with answering_under(request.scope.get(BASE_SCOPE)):
            link = self._links.link(stored, owner)
        return JSONResponse(content_as_json(stored, link), 201, {"Cache-Control": "no-store"})

    async def _put(self, body: "Body", owner: str, declared: str | None, name: str | None) -> Stored:
        async with aclosing(body.chunks()) as chunks:
            head, rest = await peeked(chunks)
            async with aclosing(rest) as content:
                return await self._store.put(content, owner=owner, media_type=typed(head, declared, name), name=name)


class Body:
    """A request's body, of at most `limit` bytes."""

    def __init__(self, request: Request, limit: int) -> None:
        self._chunks = request.stream()
        self._limit = limit
        self._size = 0

    def check(self, headers: Headers) -> None:
        """Raise ContentTooLarge if the headers already give a size above the limit."""
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length) > self._limit:
            raise self._too_large()

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives. Raises ContentTooLarge, ClientDisconnect, or, after silence, TimeoutError."""
        while True:
            with anyio.fail_after(_SILENCE_SECONDS):
                chunk = await anext(self._chunks, None)
            if chunk is None:
                return
            self._size += len(chunk)
            if self._size > self._limit:
                raise self._too_large()
            if chunk:
                yield chunk

    async def rest(self) -> None:
        """Read and discard the rest, because a client that is still sending would not see the answer."""
        most = self._size + _LINGERING_BYTES
        with anyio.move_on_after(_LINGERING_SECONDS), suppress(ClientDisconnect):
            async for chunk in self._chunks:
                self._size += len(chunk)
                if self._size > most:
                    break

    def _too_large(self) -> ContentTooLarge:
        return ContentTooLarge(
            f"the upload is larger than {self._limit:,} bytes", remedy="see [content] max_upload_bytes"
        )


def _name(request: Request) -> str | None:
    given = request.query_params.get("name")
    return clean_name(given) or name_in_disposition(request.headers.get("content-disposition"))
