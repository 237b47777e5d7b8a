"""Look up the content that one call names: each piece is checked and read once, however often it is named."""

import mimetypes
import os
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import pybase64
from anyio import to_thread

from gateway.config.content_settings import LimitSettings
from gateway.content.arguments.files import TemporaryFiles
from gateway.content.fetch import percent_decoded
from gateway.content.links.content_linker import ContentLinker
from gateway.content.store import ContentStore, Stored, fetch_bytes
from gateway.core.fact_words import kind_words, plain, size_words
from gateway.core.model import media_types
from gateway.core.model.base64_text import decoded_size, head, mend
from gateway.core.model.kinds import Kind, kind_of
from gateway.core.tools.arguments import Content, DataUri, Handle, Parameter, Reference, Url
from gateway.errors import ArgumentError

if TYPE_CHECKING:
    from gateway.content.arguments.resolve_content import Fetch

_LARGE = 256 * 1024
"""Content larger than this many bytes is encoded in a thread, so that other calls do not wait."""
_LINKED = ("url", "openai-file")
_UNKNOWN_TYPE = "application/octet-stream"
_IS_BASE64 = re.compile(r"data:[^,]*;base64,", re.IGNORECASE)
_ENDING = re.compile(r"[0-9a-z]{1,8}")

Result = TypeVar("Result")


class _Facts(NamedTuple):
    """The kind and type of content, found from its bytes where the declared type says nothing."""

    kind: Kind
    media_type: str


class ContentLookup:
    """Looks up content for one call. Everything opened for the call is closed with `stack`."""

    def __init__(
        self,
        store: ContentStore,
        limits: LimitSettings,
        files: TemporaryFiles,
        fetch: "Fetch | None",
        links: ContentLinker | None,
        stack: AsyncExitStack,
        owner: str,
        upstream: str,
        accept: str,
    ) -> None:
        self._store = store
        self._limits = limits
        self._files = files
        self._fetch = fetch
        self._links = links
        self._stack = stack
        self._owner = owner
        self._upstream = upstream
        self._accept = accept
        self._left = limits.call_bytes
        self._encoded: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._folder: Path | None = None

    async def content(self, reference: Reference, parameter: Parameter) -> Content | None:
        """Return the content of a reference in the form that the parameter takes; None if the value already fits.

        Raises ArgumentError, ContentError or FetchError.
        """
        match reference:
            case Handle(text):
                stored = await self._store.metadata(text, owner=self._owner)
                self._check_origin(stored)
                return await self._kept(stored, parameter)
            case Url(text):
                return await self._kept(await self._fetched(text, parameter), parameter)
            case DataUri():
                return await self._inline(reference, parameter)

    # -- stored content ----------------------------------------------------------------------------------------------

    async def _kept(self, stored: Stored, parameter: Parameter) -> Content:
        facts = await self._facts(stored)
        self._check(facts, stored.size, parameter, stored.handle)
        content = Content(facts.kind, facts.media_type, stored.size, stored.handle, stored.name)
        match parameter.form:
            case "url" | "openai-file":
                return replace(content, link=self._link(stored))
            case "path":
                return replace(content, path=await self._path(stored, facts.media_type))
            case _:
                return replace(content, data=await self._data(stored))

    async def _facts(self, stored: Stored) -> _Facts:
        if stored.kind != "other":
            return _Facts(stored.kind, stored.media_type)
        start = await fetch_bytes(self._store, stored.handle, owner=self._owner, end=media_types.HEAD_BYTES)
        return _facts_in(start, stored.media_type, stored.name)

    def _check_origin(self, stored: Stored) -> None:
        if self._accept == "own" and stored.origin not in (None, self._upstream):
            whose = f"{stored.handle} came from {plain(stored.origin, 60)}"
            raise ArgumentError(
                f"{whose}, and {self._upstream} accepts no content of other upstreams",
                remedy=f"see upstreams.{self._upstream}.accept",
            )

    def _check(self, facts: _Facts, size: int, parameter: Parameter, named: str) -> None:
        """Raise ArgumentError for content that the parameter, or this call, does not accept."""
        if not parameter.takes(facts.kind, facts.media_type):
            wanted = kind_words(parameter.kind)
            if parameter.accepts:
                wanted += f" of type {' or '.join(plain(one, 60) for one in parameter.accepts[:10])}"
            is_what = f"{kind_words(facts.kind)} ({plain(facts.media_type, 80)}, {size_words(size)})"
            raise ArgumentError(f"{wanted} is required, and {named} is {is_what}", remedy="give the handle of another")
        if parameter.form in _LINKED:
            return
        most = min(self._limits.argument_bytes, parameter.max_bytes or self._limits.argument_bytes)
        if size > most:
            raise ArgumentError(
                f"{named} has {size_words(size)}, and at most {size_words(most)} are allowed",
                remedy="give a smaller one" if most == parameter.max_bytes else "see limits.argument_bytes",
            )
        self._left -= size
        if self._left < 0:
            most = self._limits.call_bytes
            raise ArgumentError(
                f"the content of this call has more than {size_words(most)}", remedy="see limits.call_bytes"
            )

    def _link(self, stored: Stored) -> str:
        link = self._links.link(stored, self._owner) if self._links is not None else None
        if link is None:
            raise ArgumentError("the tool needs a URL, and this gateway has no HTTP side to serve one")
        return link

    async def _data(self, stored: Stored) -> str:
        if stored.handle not in self._encoded:
            limit = self._limits.argument_bytes
            content = await fetch_bytes(self._store, stored.handle, owner=self._owner, limit=limit)
            self._encoded[stored.handle] = await _base64(content)
        return self._encoded[stored.handle]

    async def _path(self, stored: Stored, media_type: str) -> str:
        if stored.handle not in self._paths:
            try:
                self._paths[stored.handle] = await self._written(stored, media_type)
            except OSError as error:
                why = (error.strerror or "unknown cause").lower()
                raise ArgumentError(f"no file could be made for {stored.handle}: {why}") from error
        return self._paths[stored.handle]

    async def _written(self, stored: Stored, media_type: str) -> str:
        if self._folder is None:
            self._folder = self._stack.enter_context(self._files.folder())
        path = self._folder / f"{stored.handle}.{_ending(media_type, stored.name)}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        async with (
            anyio.wrap_file(os.fdopen(descriptor, "wb")) as file,
            self._store.open(stored.handle, owner=self._owner) as opened,
        ):
            async for chunk in opened:
                await file.write(chunk)
        return str(path)

    # -- content given inline, or by URL ----------------------------------------------------------------------------

    async def _fetched(self, url: str, parameter: Parameter) -> Stored:
        if self._fetch is None:
            raise ArgumentError("this gateway does not fetch URLs", remedy="give a handle")
        most = min(self._limits.argument_bytes, parameter.max_bytes or self._limits.argument_bytes)
        async with self._fetch(url, max_bytes=most) as fetched:
            return await self._store.put(
                fetched.chunks, owner=self._owner, media_type=fetched.media_type, name=fetched.name
            )

    async def _inline(self, reference: DataUri, parameter: Parameter) -> Content | None:
        data, declared = await _read(reference.text)
        if data is None:
            raise ArgumentError("the data: URI is malformed", remedy="give a handle, or data:<type>;base64,<data>")
        facts = _facts_in(head(data, media_types.HEAD_BYTES), declared or _UNKNOWN_TYPE, None)
        size = decoded_size(data)
        if reference.fits or parameter.form == "base64":
            self._check(facts, size, parameter, "what was given")
            return None if reference.fits else Content(facts.kind, facts.media_type, size, data=data)
        if size > self._limits.argument_bytes:
            most = size_words(self._limits.argument_bytes)
            raise ArgumentError(f"{size_words(size)} were given, and at most {most} are allowed")
        content = await _run(pybase64.b64decode, data)
        stored = await self._store.put(content, owner=self._owner, media_type=facts.media_type)
        return await self._kept(stored, parameter)


def _facts_in(head: bytes, declared: str, name: str | None) -> _Facts:
    said, found = media_types.normalise(declared), media_types.inspect(head).media_type
    # A zip archive is many things, and its bytes do not say which.
    media_type = (said if found == "application/zip" and said else found or said) or _UNKNOWN_TYPE
    return _Facts(kind_of(media_type, name), media_type)


async def _read(uri: str) -> tuple[str | None, str | None]:
    """Return the content of a data URI as base64 (None if it is malformed), and the type it declares."""
    mended = await _run(mend, uri)
    if mended.data is not None or _IS_BASE64.match(uri[:1024]):
        return mended.data, mended.media_type
    before, comma, text = uri.partition(",")
    if not comma:
        return None, None
    return await _base64(await _run(percent_decoded, text)), before[len("data:") :].partition(";")[0] or "text/plain"


async def _base64(content: bytes) -> str:
    return await _run(pybase64.b64encode_as_string, content)


async def _run(function: Callable[[Any], Result], content: Any) -> Result:
    if len(content) <= _LARGE:
        return function(content)
    return await to_thread.run_sync(function, content)


def _ending(media_type: str, name: str | None) -> str:
    """Return the file name extension without its dot: by the type, else from the original name."""
    if known := media_types.EXTENSIONS.get(media_type):
        return known
    had = (name or "").rpartition(".")[2].lower()
    if "." in (name or "") and _ENDING.fullmatch(had):
        return had
    return (mimetypes.guess_extension(media_type) or ".bin")[1:]
