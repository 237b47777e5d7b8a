"""`gateway_read`: kept text, or any resource, piece by piece."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

import pybase64

from gateway.builtin import wording
from gateway.builtin.arguments import handle_in, number_in, text_in
from gateway.builtin.declarations import DEFAULT_LIMIT
from gateway.core.model import base64_text, media_types
from gateway.core.model.profile import Profile
from gateway.core.wording import embedded_text, facts, pixel_words, plain, size_words
from gateway.errors import ContentError, InvalidRequest
from gateway.store import URI_SCHEME, ContentStore, handle_from

ReadResource = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Reads a resource of an upstream by its uri: the raw result of `resources/read`."""

_LAST_LINE = 400
"""Characters that the host's limits must leave beside the text that is shown."""

_TEXTUAL = frozenset(
    {
        "application/json",
        "application/ndjson",
        "application/xml",
        "application/javascript",
        "application/yaml",
        "application/toml",
        "image/svg+xml",
    }
)


async def read(
    arguments: Mapping[str, Any], store: ContentStore, read_resource: ReadResource, profile: Profile, *, owner: str
) -> list[dict[str, Any]]:
    """One text block: the piece that was asked for, and a last line that says what it is a piece of.

    Content that is no text is named in a line, and kept if it was not.

    Raises:
        InvalidRequest: arguments that cannot be meant.
        ContentError: the handle is unknown or expired.
        GatewayError: whatever reading the resource raises.
    """
    handle, uri = handle_in(arguments), text_in(arguments, "uri")
    if uri is not None and uri.startswith(URI_SCHEME):
        handle, uri = handle or handle_from(uri), None
    if (handle is None) == (uri is None):
        raise InvalidRequest("give either handle or uri", remedy="one of the two, as an earlier result named it")
    offset = number_in(arguments, "offset", least=0) or 0
    limit = number_in(arguments, "limit", least=1) or DEFAULT_LIMIT
    desk = _Desk(store, profile, owner)
    found = await desk.resource(uri, read_resource) if uri is not None else await desk.stored(handle or "")
    return [{"type": "text", "text": found.text if found.is_line else _piece(found.text, offset, limit, profile)}]


class _Found(NamedTuple):
    """A text to read in pieces; or, where there is none, one line that says what there is."""

    text: str
    is_line: bool = False


class _Desk:
    """Finds what is to be read, for one caller."""

    def __init__(self, store: ContentStore, profile: Profile, owner: str) -> None:
        self.store = store
        self.profile = profile
        self.owner = owner

    async def stored(self, handle: str) -> _Found:
        """What is behind a handle."""
        stored = await self.store.metadata(handle, owner=self.owner)
        content = await self.store.read(handle, owner=self.owner)
        if is_text(stored.media_type):
            return _Found(content.decode("utf-8", "replace"))
        return self.line(handle, content, stored.media_type, handle)

    async def resource(self, uri: str, read_resource: ReadResource) -> _Found:
        """What a resource holds: one thing, or several below one another, each with its uri."""
        result = await read_resource(uri)
        contents: Any = result.get("contents")
        parts = [
            cast("Mapping[str, Any]", part)
            for part in (cast("list[Any]", contents) if isinstance(contents, list) else [])
            if isinstance(part, Mapping)
        ]
        if not parts:
            raise InvalidRequest(f"{plain(uri)} has no content")
        found = [await self.part(part, uri) for part in parts]
        if len(found) == 1:
            return found[0]
        texts = [
            each.text if each.is_line else embedded_text(_uri(part, uri), _declared(part) or "", each.text)
            for part, each in zip(parts, found, strict=True)
        ]
        return _Found("\n".join(texts))

    async def part(self, part: Mapping[str, Any], uri: str) -> _Found:
        """One thing that a resource holds."""
        text, blob, named = part.get("text"), part.get("blob"), _uri(part, uri)
        if isinstance(text, str):
            return _Found(text)
        data = base64_text.mend(blob).data if isinstance(blob, str) else None
        if data is None:
            return _Found(f"[{plain(named, 2_000)}: unreadable, its data is no base64]", is_line=True)
        content, declared = pybase64.b64decode(data), _declared(part)
        if declared is not None and is_text(declared):
            return _Found(content.decode("utf-8", "replace"))
        media_type = media_types.inspect(content).media_type or declared or "application/octet-stream"
        try:
            kept = await self.store.put(content, owner=self.owner, media_type=media_type, name=named)
        except ContentError:
            return self.line(named, content, media_type, None)
        return self.line(named, content, media_type, kept.handle)

    def line(self, named: str, content: bytes, declared: str, handle: str | None) -> _Found:
        """The line for bytes that are no text."""
        found = media_types.inspect(content)
        media_type = found.media_type or declared
        family = media_types.family(media_type)
        kind = {"image": "an image", "audio": "sound", "video": "a video", "document": "a document"}
        pixels = pixel_words(found.size) if found.size else None
        known = facts(plain(media_type, 80), pixels, size_words(len(content)))
        viewable = family == "image" and self.profile.image.show == "native"
        words = wording.no_text(kind.get(family, "binary content"), named, known, handle, viewable)
        return _Found(words, is_line=True)


def is_text(media_type: str) -> bool:
    """Whether content of this type is read as UTF-8 text."""
    plain_type = media_types.normalise(media_type) or ""
    return plain_type.startswith("text/") or plain_type in _TEXTUAL or plain_type.endswith(("+json", "+xml", "+yaml"))


def _piece(text: str, offset: int, limit: int, profile: Profile) -> str:
    if offset > len(text) or (offset == len(text) and text):
        raise InvalidRequest(
            f"offset {offset} is at or after the end", remedy=f"the text has {len(text):,} characters; begin below that"
        )
    piece = text[offset : offset + _within(limit, profile)]
    result_chars = profile.limits.result_chars
    while result_chars is not None and len(piece) > 1 and _escaped(piece) + _LAST_LINE > result_chars * 9 // 10:
        piece = piece[: len(piece) * 2 // 3]
    line = wording.shown_text(offset, len(piece), len(text))
    return f"{piece}\n{line}" if piece else line


def _within(limit: int, profile: Profile) -> int:
    """The limit, or what the host shows in one result if that is less: shaping would cut the middle out of more."""
    most = profile.text.max_chars
    return limit if most is None else min(limit, max(1, most - _LAST_LINE))


def _escaped(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False))


def _uri(part: Mapping[str, Any], uri: str) -> str:
    named = part.get("uri")
    return named if isinstance(named, str) and named else uri


def _declared(part: Mapping[str, Any]) -> str | None:
    declared = part.get("mimeType")
    return plain(declared, 80) if isinstance(declared, str) and declared.strip() else None
