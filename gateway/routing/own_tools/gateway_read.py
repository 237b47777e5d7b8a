"""`gateway_read`: read stored text, or any resource, piece by piece."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pybase64

from gateway.content.store import URI_SCHEME, ContentStore, fetch_bytes, handle_from
from gateway.core.fact_words import join_facts, pixel_words, plain, size_words
from gateway.core.model import base64_text, media_types
from gateway.core.model.effects import MediaWork, QueryJson, ReadDocument
from gateway.core.model.json_size import wire_chars
from gateway.core.model.json_values import objects_in
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import text_tokens
from gateway.core.tools.catalogue import OWN
from gateway.core.wording import embedded_text, page_mark
from gateway.errors import ContentError, InvalidRequest, MediaError
from gateway.routing.own_tools import wording
from gateway.routing.own_tools.arguments import handle_in, number_in, text_in
from gateway.routing.own_tools.declarations import DEFAULT_LIMIT
from gateway.routing.ports import ReadResource

MOST_BYTES = 48 * 1024 * 1024
"""Maximum size of content in one answer: in base64 it is as large as a result may be by default."""

_MOST_TEXT_BYTES = 64 * 1024 * 1024
"""Maximum size of a text that is read in pieces or asked: what a result may have by default (`limits.result_bytes`)."""
_LAST_LINE = 400
"""Characters that must stay free within the host's limits beside the text shown."""
_LAST_LINE_TOKENS = 50
"""The same in tokens."""
_LEAST_TOKENS = 50
"""Tokens that are shown however small the budget is."""

_PDF = "application/pdf"
_MOST_PAGES = 500
_MOST_CHARS = 2_000_000
_CONTEXT = 120
"""Characters shown before and after words that were searched for."""
_LONGEST_SEARCH = 300
_MOST_PLACES = 50
_LONGEST_QUERY = 2_000

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


@dataclass(frozen=True)
class Sources:
    """Sources of text: the store, the resources of upstreams, and the reader of documents."""

    store: ContentStore
    media: MediaWork
    read_resource: ReadResource


async def read(arguments: Mapping[str, Any], sources: Sources, profile: Profile, *, owner: str) -> list[dict[str, Any]]:
    """Return one text block: the requested piece, and a last line that says which part of the whole it is.

    With `search`, the places where the words occur; with `query`, what it finds in JSON. Of a PDF the text is read;
    other content that is not text is named in a line, and kept if it was not kept already.

    Raises:
        InvalidRequest: the arguments are invalid.
        ContentError: the handle is unknown or expired.
        MediaError: the query is wrong, or cannot be answered.
        GatewayError: the resource cannot be read.
    """
    handle, uri = handle_in(arguments), text_in(arguments, "uri")
    if uri is not None and uri.startswith(URI_SCHEME):
        handle, uri = handle or handle_from(uri), None
    if (handle is None) == (uri is None):
        raise InvalidRequest("give either handle or uri", remedy="one of the two, as an earlier result named it")
    offset = number_in(arguments, "offset", least=0) or 0
    limit = number_in(arguments, "limit", least=1) or DEFAULT_LIMIT
    words, query = text_in(arguments, "search"), text_in(arguments, "query")
    if words is not None and query is not None:
        raise InvalidRequest("give either search or query", remedy="search in what the query finds in a second call")
    finder = _TextFinder(sources, profile, owner)
    found = await finder.resource(uri) if uri is not None else await finder.stored(handle or "")
    if found.is_line:
        shown = found.text
    elif query is not None:
        shown = _piece(await finder.queried(found.text, query), offset, limit, profile)
    elif words is not None:
        shown = _places(found.text, words, offset, profile)
    else:
        shown = _piece(found.text, offset, limit, profile)
    return [{"type": "text", "text": shown}]


class _Found(NamedTuple):
    """A text to read in pieces, or a line that describes content without text."""

    text: str
    is_line: bool = False


class _TextFinder:
    """Finds the content to read, for one caller."""

    def __init__(self, sources: Sources, profile: Profile, owner: str) -> None:
        self.store = sources.store
        self.media = sources.media
        self.read_resource = sources.read_resource
        self.profile = profile
        self.owner = owner

    async def stored(self, handle: str) -> _Found:
        """Return the content of a handle."""
        stored = await self.store.metadata(handle, owner=self.owner)
        if is_text(stored.media_type):
            content = await fetch_bytes(self.store, handle, owner=self.owner, limit=_MOST_TEXT_BYTES)
            return _Found(content.decode("utf-8", "replace"))
        head = await fetch_bytes(self.store, handle, owner=self.owner, end=media_types.HEAD_BYTES)
        if media_types.inspect(head).media_type == _PDF:
            whole = await fetch_bytes(self.store, handle, owner=self.owner, limit=MOST_BYTES)
            if document := await self.document(whole):
                return document
        return self.line(handle, head, stored.media_type, handle, stored.size)

    async def queried(self, text: str, query: str) -> str:
        """Return what a query finds in a JSON text: JSON, or rows as a table."""
        if len(query) > _LONGEST_QUERY:
            raise InvalidRequest(f"query takes at most {_LONGEST_QUERY:,} characters", remedy="ask for less at a time")
        content = text.encode("utf-8", "replace")
        return (await self.media.run(QueryJson("query", content, query, _MOST_CHARS))).text

    async def document(self, content: bytes) -> _Found | None:
        """Return the text of a PDF with a mark before each page, or None if there is none."""
        if media_types.inspect(content).media_type != _PDF:
            return None
        try:
            read = await self.media.run(ReadDocument("read", content, _MOST_PAGES, _MOST_CHARS))
        except MediaError:
            return None  # named in a line, as other content that is not text
        if not any(text.strip() for text in read.texts):
            return None
        pages = enumerate(read.texts, 1)
        marked = [f"{page_mark(number, read.pages, bool(text.strip()))}\n{text.strip()}" for number, text in pages]
        return _Found("\n\n".join(marked))

    async def resource(self, uri: str) -> _Found:
        """Return the contents of a resource: one, or several one after the other, each with its URI."""
        result = await self.read_resource(uri)
        contents: Any = result.get("contents")
        parts = objects_in(contents)
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
        """Return one item of a resource's contents."""
        text, blob, named = part.get("text"), part.get("blob"), _uri(part, uri)
        if isinstance(text, str):
            return _Found(text)
        data = base64_text.mend(blob).data if isinstance(blob, str) else None
        if data is None:
            return _Found(f"[{plain(named, 2_000)}: unreadable, its data is not base64]", is_line=True)
        content, declared = pybase64.b64decode(data), _declared(part)
        if declared is not None and is_text(declared):
            return _Found(content.decode("utf-8", "replace"))
        media_type = media_types.inspect(content).media_type or declared or "application/octet-stream"
        try:
            kept = await self.store.put(content, owner=self.owner, media_type=media_type, name=named, origin=OWN)
        except ContentError:
            return await self.document(content) or self.line(named, content, media_type, None)
        return await self.document(content) or self.line(named, content, media_type, kept.handle)

    def line(
        self, named: str, content: bytes, declared: str, handle: str | None, byte_size: int | None = None
    ) -> _Found:
        """Return the line for bytes that are not text. With `byte_size`, `content` may be just their beginning."""
        found = media_types.inspect(content)
        media_type = found.media_type or declared
        family = media_types.family(media_type)
        kind = {"image": "an image", "audio": "sound", "video": "a video", "document": "a document"}
        pixels = pixel_words(found.size) if found.size else None
        known = join_facts(plain(media_type, 80), pixels, size_words(len(content) if byte_size is None else byte_size))
        viewable = (family == "image" and self.profile.image.show == "native") or media_type == _PDF
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
    while len(piece) > 1 and not _fits(piece, profile):
        piece = piece[: len(piece) * 2 // 3]
    line = wording.shown_text(offset, len(piece), len(text))
    return f"{piece}\n{line}" if piece else line


def _fits(piece: str, profile: Profile) -> bool:
    """Whether a piece and its last line are within the host's limits on a whole result."""
    chars, tokens = profile.limits.result_chars, _token_room(profile)
    if chars is not None and wire_chars(piece) + _LAST_LINE > chars * 9 // 10:
        return False
    return tokens is None or text_tokens(piece) <= tokens


def _token_room(profile: Profile) -> int | None:
    """Return the tokens of text beside the line of an answer; None: any number. Shaping would cut a longer text."""
    most = profile.tokens.max_result
    return None if most is None else max(_LEAST_TOKENS, most * 9 // 10 - _LAST_LINE_TOKENS)


def _places(text: str, words: str, offset: int, profile: Profile) -> str:
    """Each place where the words occur from `offset` on, with its context, within the host's limits."""
    wanted = words.split()
    if len(words) > _LONGEST_SEARCH:  # it may be compared in full at each place of the text
        raise InvalidRequest(f"search takes at most {_LONGEST_SEARCH} characters", remedy="give fewer words")
    pattern = re.compile(r"\s+".join(map(re.escape, wanted)), re.IGNORECASE)
    most, most_tokens = _within(DEFAULT_LIMIT, profile), _token_room(profile)
    lines: list[str] = []
    found = chars = tokens = 0
    on: int | None = None
    for match in pattern.finditer(text, min(offset, len(text))):
        found += 1
        line = wording.place(match.start(), text[max(0, match.start() - _CONTEXT) : match.end() + _CONTEXT])
        chars += len(line) + 1
        if most_tokens is not None and on is None:
            tokens += text_tokens(line) + 1  # and the end of the line
        is_room = chars <= most and len(lines) < _MOST_PLACES and (most_tokens is None or tokens <= most_tokens)
        if on is None and (is_room or not lines):  # without a line, the search would never get on
            lines.append(line)
        elif on is None:
            on = match.start()
    return "\n".join([wording.places(words, found, len(lines), on), *lines])


def _within(limit: int, profile: Profile) -> int:
    """The limit, or the host's own limit per result if lower: shaping would cut the middle out of a longer text."""
    most = profile.text.max_chars
    return limit if most is None else min(limit, max(1, most - _LAST_LINE))


def _uri(part: Mapping[str, Any], uri: str) -> str:
    named = part.get("uri")
    return named if isinstance(named, str) and named else uri


def _declared(part: Mapping[str, Any]) -> str | None:
    declared = part.get("mimeType")
    return plain(declared, 80) if isinstance(declared, str) and declared.strip() else None
