"""Rescue: turning media that no model could see into blocks of its own.

Media is found in data URIs in text (also in Markdown images and <img> tags), text that is nothing but base64, JSON in
text (also as a string within JSON), base64 between quotes or in labelled brackets in other text (broken JSON, or
objects as printed by a client), and structured content. A short marker replaces the bytes. The same bytes are never
shown twice: real servers send every image both as a block and in structured content (server-filesystem), or both as
text and in structured content.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import is_not
from types import NoneType
from typing import Any, cast

from gateway.core.model import media_types
from gateway.core.model.base64_text import mend
from gateway.core.model.blocks import AudioBlock, Block, Found, ImageBlock, ResourceBlock, TextBlock, UnknownBlock
from gateway.core.model.contents import found_in
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_shape import has_long_text
from gateway.core.model.json_size import compact_json
from gateway.core.model.notes import Note
from gateway.core.wording import rescued

_SHORTEST = 64
"""Length below which strings are left alone: no image is that small, and words can look like base64."""
_MOST = 200
"""Maximum number of pieces of media rescued from one result; the rest stays as it is."""
_DEEPEST = 60
_MEDIA_FREE = frozenset({int, float, bool, NoneType})
"""Types of JSON values that cannot hide media."""
_SHOWABLE = frozenset({"image", "audio", "video", "document"})
_TYPE_KEYS = ("mimeType", "mime_type", "mediaType", "media_type", "contentType", "content_type")

_DATA_URI = re.compile(
    r"data:(?P<type>[\w.+-]{1,60}/[\w.+-]{1,80})(?:;[\w-]{1,40}=[\w.\"-]{1,80}){0,4};base64,(?P<data>[A-Za-z0-9+/_=-]{64,})"
)
# What often surrounds a data URI. Tried only beside a URI that was found, so that a hostile text costs no more.
_AROUND = 200
_OPENING = re.compile(r"""(?:!\[(?P<alt>[^\]\n]{0,100})\]\(|<img\b[^<>]{0,100}?\bsrc\s?=\s?["'])\Z""")
_CLOSING = re.compile(r"""\)|["'][^<>]{0,200}>""")
_QUOTED = re.compile(
    r"""(?<=["'])[A-Za-z0-9+/_-]{64,}+={0,2}+(?=\\{0,3}["'])"""
    r"""|(?<=: )[A-Za-z0-9+/_-]{64,}+={0,2}+(?=\])"""  # `[Image: ...]`, as AutoGen 0.7.5 writes it
)
_MAY_BE_QUOTED = re.compile(r"""["' ][A-Za-z0-9+/_-]{64}""")
"""Found wherever `_QUOTED` is, which takes four times as long to find nothing."""
_ONLY_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]{64,}={0,2}\s*")


@dataclass
class _Rescuer:
    """The state of one run over a result: the data of every piece of media so far, and the notes."""

    seen: set[str]
    notes: list[Note] = field(default_factory=list[Note])
    count: int = 0

    def take(self, data: str, declared: str | None, where: str, index: int | None) -> tuple[Found, Block | None] | None:
        """Recognise media in a string, with a block for it unless the result shows it already; None if not media."""
        if self.count >= _MOST:
            return None
        mended = mend(data)
        if mended.data is None or media_types.inspect_base64(mended.data).media_type is None:
            # The bytes themselves must show that they are media: a declared type beside a token proves nothing.
            return None
        found = found_in(mended, declared)
        if found is None or media_types.family(found.media_type) not in _SHOWABLE:
            return None
        self.count += 1
        if found.data in self.seen:
            self.notes.append(Note(kind="repeated", text=f"{found.media_type} in {where}, shown already", block=index))
            return found, None
        self.seen.add(found.data)
        self.notes.append(Note(kind="rescued", text=f"{found.media_type} from {where}", block=index))
        return found, block_for(found, self.count)


def rescue(envelope: Envelope) -> Envelope:
    """Return the same envelope with hidden media as blocks, each behind the text that held it or at the end."""
    rescuer = _Rescuer({found.data for found in map(_found, envelope.blocks) if found})
    blocks: list[Block] = []
    for index, block in enumerate(envelope.blocks):
        text = _as_text(block, index, rescuer)
        blocks.extend((block,) if text is None else _from_text(text, index, rescuer))
    structured = envelope.structured_content
    if envelope.has_structured_content:
        structured, hidden = _from_json(structured, rescuer, "structured content", None)
        blocks.extend(hidden)
    if not rescuer.count and not rescuer.notes:
        return envelope
    update = {"blocks": tuple(blocks), "structured_content": structured}
    return envelope.model_copy(update=update).with_note(*rescuer.notes)


def block_for(found: Found, number: int = 1) -> Block:
    """Return a block that shows the media: an image, a sound, or an embedded resource."""
    update = {"found": found}
    family = media_types.family(found.media_type)
    if family == "image":
        return ImageBlock.model_validate(
            {"type": "image", "data": found.data, "mimeType": found.media_type}
        ).model_copy(update=update)
    if family == "audio":
        return AudioBlock.model_validate(
            {"type": "audio", "data": found.data, "mimeType": found.media_type}
        ).model_copy(update=update)
    uri = f"rescued:{number}.{media_types.extension(found.media_type)}"
    resource = {"uri": uri, "mimeType": found.media_type, "blob": found.data}
    return ResourceBlock.model_validate({"type": "resource", "resource": resource}).model_copy(update=update)


def _found(block: Block) -> Found | None:
    return block.found if isinstance(block, ImageBlock | AudioBlock | ResourceBlock) else None


def _as_text(block: Block, index: int, rescuer: _Rescuer) -> TextBlock | None:
    """Read a block as text; servers also send a bare string, as `"content": "hello"` or in a list."""
    if isinstance(block, UnknownBlock) and isinstance(block.value, str):
        rescuer.notes.append(Note(kind="mended", text="a string in place of a block read as text", block=index))
        return TextBlock(type="text", text=block.value)
    return block if isinstance(block, TextBlock) else None


def _from_text(block: TextBlock, index: int, rescuer: _Rescuer) -> Iterator[Block]:
    text = block.text
    if len(text) < _SHORTEST:
        yield block
    elif _looks_like_json(text) and (parsed := _parse(text)) is not None:
        before = rescuer.count
        value, hidden = _from_json(parsed, rescuer, "JSON in text", index)
        yield block if rescuer.count == before else _with_text(block, compact_json(value))
        yield from hidden
    elif _ONLY_BASE64.fullmatch(text) and (taken := rescuer.take(text, None, "base64 in text", index)):
        yield taken[1] or _with_text(block, rescued(taken[0].media_type or "", taken[0].byte_size))
    else:
        for part in _from_data_uris(block, index, rescuer) if "base64," in text else (block,):
            yield from _from_quotes(part, index, rescuer) if isinstance(part, TextBlock) else (part,)


def _from_quotes(block: TextBlock, index: int, rescuer: _Rescuer) -> Iterator[Block]:
    """Yield the text with markers in place of quoted base64, and then the media."""
    if _MAY_BE_QUOTED.search(block.text) is None:
        yield block
        return
    hidden: list[Block] = []
    text = _marked(_QUOTED, block.text, rescuer, "quoted base64 in text", index, hidden)
    yield block if text == block.text else _with_text(block, text)
    yield from hidden


def _marked(
    pattern: re.Pattern[str], text: str, rescuer: _Rescuer, where: str, index: int | None, hidden: list[Block]
) -> str:
    """Replace every match that is media by a marker; blocks for the media are added to `hidden`."""

    def replaced(match: re.Match[str]) -> str:
        taken = rescuer.take(match[0], None, where, index)
        if taken is None:
            return match[0]
        if taken[1] is not None:
            hidden.append(taken[1])
        return rescued(taken[0].media_type or "", taken[0].byte_size)

    return pattern.sub(replaced, text)


def _from_data_uris(block: TextBlock, index: int, rescuer: _Rescuer) -> Iterator[Block]:
    """Yield the text around each data URI, with the media in between, so that the order is exact."""
    text, done, pending = block.text, 0, ""
    for match in _DATA_URI.finditer(text):
        taken = rescuer.take(match["data"], match["type"], "a data URI in text", index)
        if taken is None:
            continue
        found, shown = taken
        start, end, alt = _with_wrapping(text, match.start(), match.end(), done)
        pending += text[done:start] + alt
        done = end
        if shown is None:
            pending += rescued(found.media_type or "", found.byte_size)
            continue
        if pending.strip():
            yield _with_text(block, pending)
        pending = ""
        yield shown
    if not done:
        yield block
    elif (pending + text[done:]).strip():
        yield _with_text(block, pending + text[done:])


def _with_wrapping(text: str, start: int, end: int, done: int) -> tuple[int, int, str]:
    """Extend the URI's range to the Markdown image or <img> tag around it; return it with the tag's text."""
    opening = _OPENING.search(text[max(done, start - _AROUND) : start])
    closing = _CLOSING.match(text, end) if opening else None
    if opening is None or closing is None:
        return start, end, ""
    return start - len(opening[0]), closing.end(), opening["alt"] or ""


def _from_json(value: Any, rescuer: _Rescuer, where: str, index: int | None) -> tuple[Any, list[Block]]:
    """Replace media in the value by markers; return it with blocks for the media that is not shown yet."""
    if not has_long_text(value, _SHORTEST):  # a table of many small values is not walked through item by item
        return value, []
    walker = _Walker(rescuer, where, index)
    return walker.walk(value, None, 0), walker.hidden


@dataclass
class _Walker:
    """One walk through JSON, collecting blocks for the media in it that is not shown yet."""

    rescuer: _Rescuer
    where: str
    index: int | None
    hidden: list[Block] = field(default_factory=list[Block])

    def walk(self, node: Any, declared: str | None, depth: int) -> Any:
        if isinstance(node, str):
            return self._string(node, declared, depth)
        if depth > _DEEPEST:
            return node
        if isinstance(node, list):
            items = cast("list[Any]", node)
            walked = [item if type(item) in _MEDIA_FREE else self.walk(item, declared, depth + 1) for item in items]
            return walked if any(map(is_not, walked, items)) else items
        if isinstance(node, dict):
            members = cast("dict[str, Any]", node)
            named = next((members[key] for key in _TYPE_KEYS if isinstance(members.get(key), str)), None)
            walked = {
                key: item if type(item) in _MEDIA_FREE else self.walk(item, named, depth + 1)
                for key, item in members.items()
            }
            return walked if any(map(is_not, walked.values(), members.values())) else members
        return node

    def _string(self, text: str, declared: str | None, depth: int) -> str:
        """Process a string that is media, JSON of its own, or text with media in it."""
        taken = self.rescuer.take(text, declared, self.where, self.index) if _may_be_media(text) else None
        if taken is not None:
            if taken[1] is not None:
                self.hidden.append(taken[1])
            return rescued(taken[0].media_type or "", taken[0].byte_size)
        if len(text) < _SHORTEST or depth > _DEEPEST:
            return text
        if _looks_like_json(text) and (parsed := _parse(text)) is not None:
            walked = self.walk(parsed, None, depth + 1)
            return text if walked is parsed else compact_json(walked)
        for pattern in (_DATA_URI, _QUOTED):
            text = _marked(pattern, text, self.rescuer, self.where, self.index, self.hidden)
        return text


def _may_be_media(text: str) -> bool:
    """A quick check of the beginning, before anything is measured or decoded."""
    if len(text) < _SHORTEST:
        return False
    start = text[:48].lstrip()
    return start[:5].lower() == "data:" or _ONLY_BASE64_START.fullmatch(start) is not None


_ONLY_BASE64_START = re.compile(r"[A-Za-z0-9+/_\r\n-]+")


def _looks_like_json(text: str) -> bool:
    start, end = text[:100].lstrip()[:1], text[-100:].rstrip()[-1:]
    return (start, end) in (("{", "}"), ("[", "]"))


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _with_text(block: TextBlock, text: str) -> TextBlock:
    return block.model_copy(update={"text": text})
