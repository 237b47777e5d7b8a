"""`gateway_put`: keep content from base64 text, an allowed URL or an allowed folder under a handle."""

import os
import stat
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
import pybase64

from gateway.content.fetch import Fetched, clean_name, peeked, percent_decoded, typed
from gateway.content.links.content_json import content_as_json
from gateway.content.links.content_linker import ContentLinker
from gateway.content.store import ContentStore, Stored
from gateway.core.fact_words import join_facts, plain, size_words
from gateway.core.model import base64_text
from gateway.core.own_names import PUT_TOOL, VIEW_TOOL
from gateway.errors import InvalidRequest
from gateway.routing.own_tools import wording
from gateway.routing.own_tools.arguments import text_in
from gateway.system.open_below import open_below

Fetch = Callable[[str], AbstractAsyncContextManager[Fetched]]
"""Fetches a URL if the configuration allows it. Raises FetchError."""

_CHUNK_BYTES = 1024 * 1024
_LONGEST_URI = 1_000
_SOURCES = ("data", "url", "path")


class PutTool:
    """The tool as configured: without `fetch` it takes no URLs, without `folders` no paths."""

    def __init__(
        self, store: ContentStore, links: ContentLinker, *, folders: Sequence[Path] = (), fetch: Fetch | None = None
    ) -> None:
        self._store = store
        self._links = links
        self._folders = tuple(folders)
        self._fetch = fetch

    def declaration(self) -> dict[str, Any]:
        """The tool as listed to hosts."""
        properties = {"data": _DATA}
        if self._fetch is not None:
            properties["url"] = _URL
        if self._folders:
            properties["path"] = _PATH
        ways = {"data": "from base64", "url": "from a URL", "path": "from a file"}
        title = "Keep content under a handle"
        return {
            "name": PUT_TOOL,
            "title": title,
            "description": (
                f"Keeps content {' or '.join(ways[one] for one in properties)} and answers with its handle, which can "
                "be given to other tools in place of the content itself. Equal content gets the same handle."
            ),
            "inputSchema": {
                "type": "object",
                "properties": {**properties, "name": _NAME, "media_type": _MEDIA_TYPE},
                "additionalProperties": False,
                **({"required": ["data"]} if len(properties) == 1 else {}),
            },
            "annotations": {
                "title": title,
                "readOnlyHint": False,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": self._fetch is not None,
            },
        }

    async def put(self, arguments: Mapping[str, Any], *, owner: str, viewable: bool) -> dict[str, Any]:
        """Keep the content and return the raw result: a line with the handle, and the same as structured content.

        `viewable`: the host shows images and is offered the tool that opens them.

        Raises:
            InvalidRequest: the arguments are invalid, or the path is not allowed.
            FetchError: the URL may not or cannot be fetched.
            ContentError: the content cannot be stored.
        """
        given = {key: value for key in _SOURCES if (value := text_in(arguments, key)) is not None}
        if len(given) != 1:
            raise InvalidRequest("it is not clear what to keep", remedy=f"give {self._one_of()}")
        ((source, value),) = given.items()
        name, declared = clean_name(text_in(arguments, "name")), text_in(arguments, "media_type")
        match source:
            case "data":
                stored = await self._put_text(value, name, declared, owner)
            case "url":
                stored = await self._put_url(value, name, owner)
            case _:
                stored = await self._put_file(value, name, declared, owner)
        known = join_facts(
            plain(stored.media_type, 80), size_words(stored.size), stored.name and plain(stored.name, 100)
        )
        tool = VIEW_TOOL if viewable and stored.kind == "image" else None
        line = wording.kept(stored.handle, known, tool)
        link = self._links.link(stored, owner)
        return {"content": [{"type": "text", "text": line}], "structuredContent": content_as_json(stored, link)}

    def _one_of(self) -> str:
        """Name the arguments of which one has to be given: those that this gateway takes."""
        taken = ["data", *(["url"] if self._fetch is not None else []), *(["path"] if self._folders else [])]
        return f"exactly one of {', '.join(taken[:-1])} and {taken[-1]}" if len(taken) > 1 else "the content in data"

    async def _put_text(self, data: str, name: str | None, declared: str | None, owner: str) -> Stored:
        content, named = await anyio.to_thread.run_sync(_decoded, data)
        media_type = typed(content, declared or named, name)
        return await self._store.put(content, owner=owner, media_type=media_type, name=name)

    async def _put_url(self, url: str, name: str | None, owner: str) -> Stored:
        if self._fetch is None:
            raise InvalidRequest("this gateway does not fetch URLs", remedy="give the content as base64 in data")
        async with self._fetch(url) as fetched:
            chunks, media_type = fetched.chunks, fetched.media_type
            return await self._store.put(chunks, owner=owner, media_type=media_type, name=name or fetched.name)

    async def _put_file(self, path: str, name: str | None, declared: str | None, owner: str) -> Stored:
        file, real = await anyio.to_thread.run_sync(_opened, path, self._folders)
        async with aclosing(file_chunks(file)) as chunks:
            head, rest = await peeked(chunks)
            async with aclosing(rest) as content:
                kept_name = name or clean_name(real.name)
                media_type = typed(head, declared, kept_name)
                return await self._store.put(content, owner=owner, media_type=media_type, name=kept_name)


async def file_chunks(file: BinaryIO) -> AsyncGenerator[bytes]:
    """Yield an open file in pieces, and close it at the end, even after an error."""
    try:
        while chunk := await anyio.to_thread.run_sync(file.read, _CHUNK_BYTES):
            yield chunk
    finally:
        file.close()


def _decoded(data: str) -> tuple[bytes, str | None]:
    """Return the bytes, and the media type that a data URI names."""
    if data[:5].lower() == "data:":
        head, comma, text = data.partition(",")
        if comma and len(head) <= _LONGEST_URI and ";base64" not in head.lower():
            return percent_decoded(text), head[5:].partition(";")[0] or None
    mended = base64_text.mend(data)
    if mended.data is None:
        raise InvalidRequest("data is not base64", remedy="give the bytes of the file in base64, or a data: URI")
    return pybase64.b64decode(mended.data), mended.media_type


def _opened(path: str, folders: Sequence[Path]) -> tuple[BinaryIO, Path]:
    """Open a file and resolve its path. All paths outside the folders, existing or not, raise the same error."""
    outside = InvalidRequest(
        f"{plain(path, 200)} is not a file in the folders that content may be taken from",
        remedy="the folders are named in [content] folders" if folders else "none is allowed: see [content] folders",
    )
    try:
        given = unquote(urlsplit(path).path) if path.startswith("file://") else path
        opened = open_below(folders, Path(given)) if os.path.isabs(given) else None
    except (OSError, ValueError):
        raise outside from None
    if opened is None:
        raise outside
    descriptor, real = opened
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise outside
    return os.fdopen(descriptor, "rb"), real


_DATA: dict[str, Any] = {"type": "string", "description": "The content in base64, or as a data: URI."}
_URL: dict[str, Any] = {"type": "string", "description": "Where to fetch it; only some addresses are allowed."}
_PATH: dict[str, Any] = {"type": "string", "description": "The full path of a file; only some folders are allowed."}
_NAME: dict[str, Any] = {"type": "string", "description": "A file name, for example chart.png."}
_MEDIA_TYPE: dict[str, Any] = {
    "type": "string",
    "description": "For example text/csv, if the content does not show it.",
}
