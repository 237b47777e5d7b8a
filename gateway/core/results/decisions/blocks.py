"""Deciding about one block, by kind."""

from typing import Any

from gateway.core import apps, fact_words, wording
from gateway.core.model import media_types
from gateway.core.model.blocks import AudioBlock, Block, ImageBlock, LinkBlock, ResourceBlock, TextBlock, UnknownBlock
from gateway.core.model.contents import decoded_text, is_textual
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import is_dict
from gateway.core.results.decisions.block_decisions import AsIs, AsText, BlockDecision, BlockSource, ToTextLine
from gateway.core.results.decisions.decision_context import PDF, DecisionContext, is_image, known_of, takes
from gateway.core.results.decisions.documents import decide_document
from gateway.core.results.decisions.images import decide_image
from gateway.core.results.decisions.links import decide_link
from gateway.core.results.decisions.sounds import decide_sound

_USER_ONLY = "meant for the user only"
_TEXT_ALONE = {"type", "text"}
"""The members of most blocks of text, whose JSON need not be written to see what else they have."""
_UNREADABLE = "its data is not base64"


def decide_block(context: DecisionContext, index: int, block: Block) -> list[BlockDecision]:
    """Decide about the block at `index`, without regard to the budget of the whole result."""
    hidden = _USER_ONLY if context.profile.audience == "respect" and block.audience == ("user",) else None
    match block:
        case TextBlock():
            if hidden:
                return [context.text_line(index, block.text, "text/plain", "text", hidden)]
            beside = {"type": "text"} if block.model_fields_set == _TEXT_ALONE else _beside(block, "text")
            return [AsText(block.text, beside, key=str(index), index=index)]
        case ImageBlock():
            return _image(context, index, block, hidden)
        case AudioBlock():
            return [_audio(context, index, block, hidden)]
        case ResourceBlock():
            return _resource(context, index, str(index), block, hidden)
        case LinkBlock():
            return decide_link(context, index, block, _linked)
        case UnknownBlock():
            return [_unknown(context, index, block)]


def is_document(block: Block) -> bool:
    """Whether a block holds a PDF, whatever its declared type."""
    found = block.found if isinstance(block, ImageBlock | ResourceBlock) else None
    return found is not None and found.media_type == PDF


def _image(context: DecisionContext, index: int, block: ImageBlock, hidden: str | None) -> list[BlockDecision]:
    found, rules = block.found, context.profile.image
    takes_all = rules.show == "native" and not rules.types
    if found is None:
        if takes_all:
            return [AsIs(block.wire(), "image", block=block)]
        context.note("dropped", "an image whose data cannot be read", index)
        return [ToTextLine("", "image", _UNREADABLE)]
    source = BlockSource(str(index), index, found)
    as_is = AsIs(block.wire(), "image", known_of(found), True, block, source, found)
    if found.media_type == PDF and not takes_all:
        uri = f"rescued:{index + 1}.pdf"
        resource = {"uri": uri, "mimeType": PDF, "blob": found.data}
        wire = {**_beside(block, "data", "mimeType"), "type": "resource", "resource": resource}
        as_document = AsIs(wire, "document", known_of(found), True, block, source, found)
        return decide_document(context, source, as_document, hidden)
    beside = {"type": "image", **_beside(block, "type", "data", "mimeType")}
    return [decide_image(context, source, beside, None, as_is, hidden)]


def _audio(context: DecisionContext, index: int, block: AudioBlock, hidden: str | None) -> BlockDecision:
    found, rules = block.found, context.profile.audio
    if found is None:
        if rules.show == "native" and not rules.types and not hidden and not context.hides_media:
            return AsIs(block.wire(), "audio", block=block, has_bytes=True)
        return _broken(context, index, "audio", None)
    source = BlockSource(str(index), index, found)
    as_is = AsIs(block.wire(), "audio", known_of(found), True, block, source, found)
    return decide_sound(context, source, as_is, _beside(block, "type", "data", "mimeType"), hidden)


def _resource(
    context: DecisionContext, index: int, key: str, block: ResourceBlock, hidden: str | None
) -> list[BlockDecision]:
    contents, found = block.resource, block.found
    if (page := _page(context, index, block, hidden)) is not None:
        return [page]
    if contents.blob is None:
        return [_embedded_text(context, index, block, hidden)]
    if found is None:
        rules = context.profile.blob
        if rules.show == "native" and not rules.types and not hidden and not context.hides_media:
            return [AsIs(block.wire(), "document", block=block, has_bytes=True)]
        return [_broken(context, index, "document", contents.uri)]
    source = BlockSource(key, index, found, contents.uri)
    family = media_types.family(found.media_type)
    kind = "document" if family in ("other", "text") else family
    as_is = AsIs(block.wire(), kind, known_of(found), True, block, source, found)
    if found.media_type == PDF:
        return decide_document(context, source, as_is, hidden)
    if context.profile.blob.image_as_image and is_image(found):
        context.note("moved", "an embedded image as an image", index)
        beside = {"type": "image", **_beside(block, "type", "resource")}
        return [decide_image(context, source, beside, contents.uri, None, hidden)]
    if context.profile.blob.audio_as_audio and family == "audio":
        context.note("moved", "embedded sound as sound", index)
        beside = _beside(block, "type", "resource")
        wire = {"type": "audio", **beside, "data": found.data, "mimeType": found.media_type}
        as_sound = AsIs(wire, "audio", known_of(found), True, block, source, found)
        return [decide_sound(context, source, as_sound, beside, hidden)]
    return [_blob(context, source, as_is, block, hidden)]


def _linked(context: DecisionContext, index: int, key: str, block: ResourceBlock) -> list[BlockDecision]:
    """Decide about the target of a link: images are always shown as images, as the alternative would be a line."""
    found = block.found
    if found is not None and is_image(found):
        source = BlockSource(key, index, found, block.resource.uri)
        return [decide_image(context, source, {"type": "image"}, block.resource.uri, None, None)]
    return _resource(context, index, key, block, None)


def _page(context: DecisionContext, index: int, block: ResourceBlock, hidden: str | None) -> BlockDecision | None:
    """Decide about a page in the result: unchanged if the host shows it, else a line; None for other blocks.

    A host that shows embedded resources unchanged gets this one unchanged as well.
    """
    contents, profile = block.resource, context.profile
    if not apps.is_embedded_page(contents.uri, contents.mime_type):
        return None
    if profile.apps.embedded == "always":
        context.note("app", "an embedded page, as it came", index)
        return AsIs(block.wire(), "page", fact_words.plain(contents.uri), block=block)
    text = contents.text if contents.blob is None else decoded_text(block.found) if block.found else None
    rules = profile.embedded_text if contents.blob is None else profile.blob
    types = () if contents.blob is None else profile.blob.types
    if text is None or (rules.show == "native" and (block.found is None or takes(types, block.found))):
        return None
    is_address = (contents.mime_type or "").lower().startswith("text/uri-list")
    address = apps.address_in_list(text) if is_address else None
    why = fact_words.join_facts(fact_words.plain(contents.uri, 500), hidden or wording.page_not_shown(address))
    return context.text_line(index, text, contents.mime_type or "text/html", "page", why)


def _embedded_text(context: DecisionContext, index: int, block: ResourceBlock, hidden: str | None) -> BlockDecision:
    contents = block.resource
    text = contents.text or ""
    if hidden:
        return context.text_line(index, text, contents.mime_type or "text/plain", "text", hidden)
    if context.profile.embedded_text.show == "native":
        return AsIs(block.wire(), "resource", fact_words.plain(contents.uri), block=block)
    context.note("moved", "an embedded text as text", index)
    return _text_of(index, contents.uri, contents.mime_type, text)


def _blob(
    context: DecisionContext, source: BlockSource, as_is: AsIs, block: ResourceBlock, hidden: str | None
) -> BlockDecision:
    """Decide about an embedded resource with bytes that are not an image or PDF, or that must not be changed."""
    rules, found = context.profile.blob, source.found
    if rules.show == "native" and takes(rules.types, found) and not hidden and not context.hides_media:
        return as_is
    if context.profile.embedded_text.show == "text" and not hidden and is_textual(found.media_type):
        text = decoded_text(found)
        if text is not None:
            context.note("converted", f"{found.media_type} read as text", source.index)
            return _text_of(source.index, block.resource.uri, found.media_type, text)
    if rules.show == "file" and not hidden:
        return context.filed(source, as_is.kind)
    heard = as_is.kind == "audio" and not hidden
    return context.line(source, as_is.kind, hidden, described=heard)


def _text_of(index: int, uri: str, media_type: str | None, text: str) -> AsText:
    known = fact_words.plain(media_type, 80) if media_type else ""
    return AsText(wording.embedded_text(uri, known, text), key=str(index), index=index)


def _broken(context: DecisionContext, index: int, kind: str, name: str | None) -> ToTextLine:
    context.note("dropped", f"{kind} whose data cannot be read", index)
    return ToTextLine("", kind, fact_words.join_facts(fact_words.plain(name or ""), _UNREADABLE))


def _unknown(context: DecisionContext, index: int, block: UnknownBlock) -> BlockDecision:
    if context.profile.unknown.show == "native":
        return AsIs(block.value, "block", block=block)
    value: Any = block.value
    kind = value.get("type") if is_dict(value) else None
    why = f"block of type {fact_words.plain(kind, 60)}" if isinstance(kind, str) else "block without a type"
    content = compact_json(value)
    return context.text_line(index, content, "application/json", "content", why)


def _beside(block: Block, *without: str) -> dict[str, Any]:
    wire: dict[str, Any] = block.wire()
    return {key: value for key, value in wire.items() if key not in without}
