"""What becomes of one block, by kind."""

import json
from typing import Any, cast

from gateway.core import wording
from gateway.core.deciding.desk import Desk, is_image, known_of
from gateway.core.deciding.fates import AsImage, AsIs, AsLine, AsText, Fate
from gateway.core.model import media_types
from gateway.core.model.blocks import (
    AudioBlock,
    Block,
    Found,
    ImageBlock,
    LinkBlock,
    ResourceBlock,
    TextBlock,
    UnknownBlock,
)
from gateway.core.model.profile import ImageRules

_USER_ONLY = "meant for the user only"
_UNREADABLE = "its data is no base64"


def decide_block(desk: Desk, index: int, block: Block) -> Fate:
    """What becomes of the block at `index`, before the budget of the whole result is looked at."""
    hidden = _USER_ONLY if desk.profile.audience == "respect" and block.audience == ("user",) else None
    match block:
        case TextBlock():
            if hidden:
                return desk.text_line(index, block.text, "text/plain", "text", hidden)
            return AsText(block.text, _beside(block, "text"))
        case ImageBlock():
            return _image(desk, index, block, block.found, hidden)
        case AudioBlock():
            rules = desk.profile.audio
            shown = rules.show == "native" and _takes(rules.types, block.found) and not hidden
            return _bytes(desk, index, block, "audio", shown, None)
        case ResourceBlock():
            return _resource(desk, index, block, hidden)
        case LinkBlock():
            return _link(desk, index, block)
        case UnknownBlock():
            return _unknown(desk, index, block)


def _image(desk: Desk, index: int, block: ImageBlock | ResourceBlock, found: Found | None, hidden: str | None) -> Fate:
    rules = desk.profile.image
    takes_all = rules.show == "native" and not rules.types
    if found is None:
        if takes_all:
            return AsIs(block.wire(), "image")
        desk.note("dropped", "an image whose data cannot be read", index)
        return AsLine("", "image", _UNREADABLE)
    if takes_all and not hidden and _is_within(found, rules) and isinstance(block, ImageBlock):
        return AsIs(block.wire(), "image", known_of(found), has_bytes=True)
    why = hidden or _why_not_shown(desk, found)
    if why is not None:
        return desk.line(index, found, "image", why)
    desk.images += 1
    uri = block.resource.uri if isinstance(block, ResourceBlock) else None
    beside = {"type": "image", **_beside(block, "type", "data", "mimeType", "resource")}
    if _takes(rules.types, found) and _is_within(found, rules):
        # Not a byte is changed: the very string that arrived goes on.
        return AsImage(found.data, found.media_type or "application/octet-stream", found.pixels, beside, uri=uri)
    return desk.fitted(index, found, f"fit:{index}", rules.max_bytes, beside, uri)


def _why_not_shown(desk: Desk, found: Found) -> str | None:
    rules = desk.profile.image
    if rules.show == "line":
        return "this host does not show images to its model"
    if desk.envelope.is_error and desk.profile.error.media == "line":
        return "this host does not show images of failed calls"
    if not is_image(found):
        return "no known image format"
    if rules.max_count is not None and desk.images >= rules.max_count:
        return f"only {rules.max_count} images are shown at once"
    return None


def _resource(desk: Desk, index: int, block: ResourceBlock, hidden: str | None) -> Fate:
    contents, found = block.resource, block.found
    if contents.blob is None:
        text = contents.text or ""
        if hidden:
            return desk.text_line(index, text, contents.mime_type or "text/plain", "text", hidden)
        if desk.profile.embedded_text.show == "native":
            return AsIs(block.wire(), "resource", wording.plain(contents.uri))
        desk.note("moved", "an embedded text as text", index)
        return AsText(wording.embedded_text(contents.uri, _declared(contents.mime_type), text))
    if desk.profile.blob.image_as_image and found and is_image(found):
        desk.note("moved", "an embedded image as an image", index)
        return _image(desk, index, block, found, hidden)
    rules = desk.profile.blob
    shown = rules.show == "native" and _takes(rules.types, found) and not hidden
    kind = media_types.family(found.media_type) if found else "document"
    return _bytes(desk, index, block, "document" if kind in ("other", "text") else kind, shown, contents.uri)


def _bytes(desk: Desk, index: int, block: AudioBlock | ResourceBlock, kind: str, shown: bool, name: str | None) -> Fate:
    found = block.found
    if shown and not (desk.envelope.is_error and desk.profile.error.media == "line"):
        return AsIs(block.wire(), kind, known_of(found) if found else "", has_bytes=True)
    if found is None:
        desk.note("dropped", f"{kind} whose data cannot be read", index)
        return AsLine("", kind, wording.facts(wording.plain(name or ""), _UNREADABLE))
    return desk.line(index, found, kind, None, name)


def _link(desk: Desk, index: int, block: LinkBlock) -> Fate:
    if desk.profile.link.show == "native":
        return AsIs(block.wire(), "link", wording.plain(block.uri))
    desk.note("named", "a link as a line", index)
    return AsLine(link_words(block, readable=desk.profile.tools.helpers))


def link_words(block: LinkBlock, *, readable: bool) -> str:
    """A link as one line of text; `readable`: the gateway's own tool can read it."""
    size = wording.size_words(block.size) if block.size is not None else None
    known = wording.facts(_declared(block.mime_type), size)
    return wording.link_line(block.title or block.name or "", known, block.uri, block.description, readable)


def _unknown(desk: Desk, index: int, block: UnknownBlock) -> Fate:
    if desk.profile.unknown.show == "native":
        return AsIs(block.value, "block")
    value: Any = block.value
    kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    why = f"block of type {wording.plain(kind, 60)}" if isinstance(kind, str) else "block without a type"
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return desk.text_line(index, content, "application/json", "content", why)


def _beside(block: Block, *without: str) -> dict[str, Any]:
    wire: dict[str, Any] = block.wire()
    return {key: value for key, value in wire.items() if key not in without}


def _takes(types: tuple[str, ...], found: Found | None) -> bool:
    return not types or (found is not None and found.media_type in types)


def _is_within(found: Found, rules: ImageRules) -> bool:
    if rules.max_bytes is not None and found.byte_size > rules.max_bytes:
        return False
    if rules.max_edge is None:
        return True
    return found.pixels is not None and max(found.pixels) <= rules.max_edge


def _declared(media_type: str | None) -> str:
    return wording.plain(media_type, 80) if media_type else ""
