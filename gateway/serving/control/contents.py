"""Stored content over the control socket: upload, list, download and remove it.

{"command": "content", "do": "put", "size": 3, "name": "a.txt", "media_type": "text/plain"} and 3 bytes
{"command": "content", "do": "get", "handle": "txt_..."}       answered by a line, followed by the bytes
{"command": "content", "do": "describe", "handle": "txt_..."}
{"command": "content", "do": "list"}
{"command": "content", "do": "delete", "handle": "txt_..."}

`owner` is the owner of the content, by default the owner for the hosts being served.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from gateway.content.fetch import clean_name, peeked, typed
from gateway.content.links.content_json import content_as_json
from gateway.content.links.content_linker import ContentLinker
from gateway.content.store import ContentStore, Stored
from gateway.core.model.caller import Caller
from gateway.core.model.media_types import extension
from gateway.errors import ContentTooLarge, InvalidRequest
from gateway.serving.control import protocol
from gateway.serving.mcp.running_requests import RunningRequests

MOST_LISTED = 2_000
"""Maximum number of items listed (the newest), since an answer is one line."""


class Contents:
    """The commands about content. `running` counts those that are being answered; `owner` is the default owner."""

    def __init__(
        self,
        store: ContentStore,
        links: ContentLinker,
        max_bytes: int,
        owner: str = Caller().principal,
        running: RunningRequests | None = None,
    ) -> None:
        self._store = store
        self._links = links
        self._max_bytes = max_bytes
        self._running = running or RunningRequests()
        self._owner = owner

    async def answer(self, request: dict[str, Any], incoming: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the reply to a request in pieces: its line, and then the content if it was requested.

        Raises GatewayError before the first piece or while content is read.
        """
        with self._running.one():
            async with aclosing(self._answered(request, incoming)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _answered(self, request: dict[str, Any], incoming: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        owner = _text(request, "owner") or self._owner
        match request.get("do"):
            case "put":
                stored = await self.put(request, incoming, owner)
                yield protocol.result(self._as_json(stored, owner))
            case "get":
                async with self._store.open(_handle(request), owner=owner) as opened:
                    yield protocol.result(self._as_json(opened.stored, owner))
                    async for chunk in opened:
                        yield chunk
            case "describe":
                stored = await self._store.metadata(_handle(request), owner=owner)
                yield protocol.result(self._as_json(stored, owner))
            case "list":
                kept = await self._store.list(owner=owner)
                shown = [self._as_json(stored, owner) for stored in kept[-MOST_LISTED:]]
                yield protocol.result({"content": shown, "pieces": len(kept)})
            case "delete":
                await self._store.delete(_handle(request), owner=owner)
                yield protocol.result({})
            case _:
                raise InvalidRequest("`do` must be put, get, describe, list or delete")

    async def put(self, request: dict[str, Any], incoming: AsyncIterator[bytes], owner: str) -> Stored:
        """Store the `size` bytes that follow the request."""
        size = request.get("size")
        if not isinstance(size, int) or size < 0:
            raise InvalidRequest("the size of the content is missing")
        if size > self._max_bytes:
            words = f"the content has {size:,} bytes, more than the {self._max_bytes:,} that are taken"
            raise ContentTooLarge(words, remedy="see [content] max_upload_bytes")
        name, declared = clean_name(_text(request, "name")), _text(request, "media_type")
        async with aclosing(_exactly(incoming, size)) as whole:
            head, rest = await peeked(whole)
            async with aclosing(rest) as content:
                media_type = typed(head, declared, name)
                return await self._store.put(content, owner=owner, media_type=media_type, name=name)

    def _as_json(self, stored: Stored, owner: str) -> dict[str, Any]:
        file = clean_name(stored.name) or f"{stored.handle}.{extension(stored.media_type)}"
        return {
            **content_as_json(stored, self._links.link(stored, owner)),
            "expires_at": stored.expires_at,
            "file": file,
        }


async def _exactly(incoming: AsyncIterator[bytes], size: int) -> AsyncGenerator[bytes]:
    left = size
    while left > 0:
        chunk = await anext(incoming, b"")
        if not chunk:
            raise InvalidRequest(f"the content broke off: {left:,} of {size:,} bytes are missing")
        yield chunk[:left]
        left -= len(chunk)


def _handle(request: dict[str, Any]) -> str:
    handle = _text(request, "handle")
    if handle is None:
        raise InvalidRequest("the handle of the content is missing")
    return handle


def _text(request: dict[str, Any], key: str) -> str | None:
    value = request.get(key)
    return value if isinstance(value, str) and value else None
