"""Stored content over the control socket: upload, list, download and remove it.

{"command": "content", "do": "put", "size": 3, "name": "a.txt", "media_type": "text/plain"} and 3 bytes
{"command": "content", "do": "get", "handle": "txt_..."}       answered by a line, followed by the bytes
{"command": "content", "do": "describe", "handle": "txt_..."}
{"command": "content", "do": "list"}
{"command": "content", "do": "delete", "handle": "txt_..."}

`owner` is the owner of the content, by default the owner for the hosts being served. Without it, `get` and `describe`
also find what belongs to another owner: handles cannot be guessed, and only the operator of the machine can ask here.
`delete` says whose that is, and leaves it. Answers name the `owner` and the `default_owner`; that to `put` has `notes`
if no host can have the content.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from gateway.content.fetch import clean_name, peeked, typed
from gateway.content.links.content_json import content_as_json
from gateway.content.links.content_linker import ContentLinker
from gateway.content.store import KeptStore, Stored
from gateway.core.fact_words import plain
from gateway.core.model.media_types import extension
from gateway.errors import ContentTooLarge, ExpiredHandle, InvalidRequest, UnknownHandle
from gateway.serving.control import protocol
from gateway.serving.control.content_owners import ContentOwners, listed_owners
from gateway.serving.mcp.running_requests import RunningRequests

MOST_LISTED = 2_000
"""Maximum number of items listed (the newest), since an answer is one line."""


class Contents:
    """The commands about content. `running` counts those that are being answered."""

    def __init__(
        self,
        store: KeptStore,
        links: ContentLinker,
        max_bytes: int,
        owners: ContentOwners | None = None,
        running: RunningRequests | None = None,
    ) -> None:
        self._store = store
        self._links = links
        self._max_bytes = max_bytes
        self._running = running or RunningRequests()
        self._owners = owners or ContentOwners()

    async def answer(self, request: dict[str, Any], incoming: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the reply to a request in pieces: its line, and then the content if it was requested.

        Raises GatewayError before the first piece or while content is read.
        """
        with self._running.one():
            async with aclosing(self._answered(request, incoming)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _answered(self, request: dict[str, Any], incoming: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        named = _text(request, "owner")
        owner = named or self._owners.default
        match request.get("do"):
            case "put":
                stored = await self.put(request, incoming, owner)
                note = self._owners.note_on_put(owner, was_named=named is not None)
                noted = {} if note is None else {"notes": [note]}
                yield protocol.result({**self._as_json(stored, owner), **noted})
            case "get":
                stored, owner = await self._found(_handle(request), named)
                async with self._store.open(stored.handle, owner=owner) as opened:
                    yield protocol.result(self._as_json(opened.stored, owner))
                    async for chunk in opened:
                        yield chunk
            case "describe":
                yield protocol.result(self._as_json(*await self._found(_handle(request), named)))
            case "list":
                yield protocol.result(await self._list(owner))
            case "delete":
                await self._delete(_handle(request), named)
                yield protocol.result({"owner": owner})
            case _:
                raise InvalidRequest("`do` must be put, get, describe, list or delete")

    async def _list(self, owner: str) -> dict[str, Any]:
        kept = await self._store.list(owner=owner)
        return {
            "owner": owner,
            "content": [self._as_json(stored, owner) for stored in kept[-MOST_LISTED:]],
            "pieces": len(kept),
            "others": [other for other in self._owners.known() if other != owner and await self._store.holds(other)],
        }

    async def _delete(self, handle: str, named: str | None) -> None:
        """Delete content of the owner that is named, or else of the default owner: another's has to be meant."""
        stored, owner = await self._found(handle, named)
        if named is None and owner != self._owners.default:
            words = f"the content of {stored.handle!r} belongs to {plain(owner, 100)}, so it was not removed"
            raise InvalidRequest(words, remedy=f"--owner {plain(owner, 100)} removes it")
        await self._store.delete(stored.handle, owner=owner)

    async def _found(self, handle: str, named: str | None) -> tuple[Stored, str]:
        """Return content and its owner: of the owner that is named, or else of any, the default owner's first.

        Raises:
            UnknownHandle: neither has it; the message says who does, or whose content was looked at.
            ExpiredHandle: it is gone.
        """
        first, gone = named or self._owners.default, None
        looked = [first, *(owner for owner in self._owners.known() if owner != first)]
        for owner in looked:
            is_meant = named in (None, owner)
            try:
                stored = await self._store.metadata(handle, owner=owner)
            except UnknownHandle:
                continue
            except ExpiredHandle as error:
                gone = gone or (error if is_meant else None)
                continue
            if is_meant:
                return stored, owner
            words = f"{plain(first, 100)} has no content with the handle {stored.handle!r}"
            raise UnknownHandle(words, remedy=f"it belongs to {plain(owner, 100)}: --owner {plain(owner, 100)}")
        raise gone or _unknown(handle, looked)

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
            "owner": owner,
            "default_owner": self._owners.default,
        }


def _unknown(handle: str, looked: Sequence[str]) -> UnknownHandle:
    words = f"there is no content with the handle {plain(handle, 80)!r}"
    remedy = f"looked for among that of {listed_owners(looked)} (--owner names another): copy the handle exactly"
    return UnknownHandle(words, remedy=f"{remedy}, unless its content has been removed")


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
