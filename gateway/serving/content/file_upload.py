"""`POST /files/<secret>`: take in a file that a host has announced (SEP-2631). The secret stands for a token."""

import hashlib
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from gateway.content.fetch import peeked, typed
from gateway.content.links.file_transfers import UPLOADS, AnnouncedFile, FileTransfers
from gateway.content.store import ContentStore
from gateway.errors import ContentError, ContentTooLarge, StoreUnavailable
from gateway.serving.content.upload import Body

logger = logging.getLogger(__name__)

_FRESH = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class _OtherBytes(Exception):
    """The bytes are not those that were announced."""


class FileUpload:
    """An ASGI application. A place that has taken a file takes no other, nor two at once."""

    def __init__(self, store: ContentStore, transfers: FileTransfers) -> None:
        self._store = store
        self._transfers = transfers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        file = self._transfers.announced(str(request.path_params["secret"]))
        if file is None or file.is_sending:
            words = "nothing is awaited here: ask for another place with files/authorizeUpload"
            return await _refusal(409 if file is not None else 404, "unknownUpload", words)(scope, receive, send)
        most = self._transfers.max_bytes if file.size is None else file.size
        body = Body(request, most)
        file.is_sending = True
        try:
            response = await self._taken(request, body, file)
        except ClientDisconnect:
            logger.info("a file broke off")
            return None
        finally:
            file.is_sending = False
        if response.status_code != 201:
            await body.rest()
        return await response(scope, receive, send)

    async def _taken(self, request: Request, body: Body, file: AnnouncedFile) -> Response:
        try:
            body.check(request.headers)
            async with aclosing(_announced(body, file)) as chunks:
                head, rest = await peeked(chunks)
                async with aclosing(rest) as content:
                    media_type = typed(head, file.media_type, file.name)
                    stored = await self._store.put(content, owner=file.owner, media_type=media_type, name=file.name)
        except _OtherBytes as error:
            return _refusal(422, str(error), "the bytes are not those that were announced: nothing was kept")
        except TimeoutError:
            return _refusal(408, "timeout", "no data was received for too long")
        except ContentTooLarge:
            return _refusal(413, "maxSizeExceeded", "more bytes came than were announced, or may be kept")
        except ContentError as error:
            return _refusal(503 if isinstance(error, StoreUnavailable) else 500, "notKept", error.message)
        file.handle = stored.handle
        return JSONResponse({"uri": file.uri, "size": stored.size}, 201, _FRESH)


def file_routes(store: ContentStore, transfers: FileTransfers) -> list[BaseRoute]:
    """Return the route, which needs no token."""
    return [Route(UPLOADS + "/{secret}", FileUpload(store, transfers), methods=["POST"])]


async def _announced(body: Body, file: AnnouncedFile) -> AsyncGenerator[bytes]:
    """Yield the body. Raises _OtherBytes at its end, so that nothing is kept, if it is not what was announced."""
    size, hashed = 0, hashlib.sha256()
    async with aclosing(body.chunks()) as chunks:
        async for chunk in chunks:
            size += len(chunk)
            hashed.update(chunk)
            yield chunk
    if file.size is not None and size != file.size:
        raise _OtherBytes("sizeMismatch")
    if file.sha256 is not None and hashed.hexdigest() != file.sha256:
        raise _OtherBytes("digestMismatch")


def _refusal(status: int, reason: str, words: str) -> Response:
    return JSONResponse({"error": words, "reason": reason}, status, _FRESH)
