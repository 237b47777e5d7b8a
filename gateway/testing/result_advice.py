"""Advice on one result: parsed as the gateway does, and judged by what hosts do with it. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.core.apps import SCHEME, pages
from gateway.core.fact_words import pixel_words, plain, size_words
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
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import wire_chars
from gateway.core.model.media_types import family, normalise
from gateway.core.results.lift_result import lift
from gateway.hosts.simulators.base64_runs import base64_runs
from gateway.hosts.simulators.readable_text import openings, words
from gateway.testing.advice import Advice, promised

MAX_EDGE = 2_000
"""In pixels. Claude Code and opencode scale larger images down themselves."""
MAX_BYTES = 1_000_000
MAX_TEXT = 40_000
"""In characters. Gemini CLI keeps this many, the others a little more."""
MAX_RESULT = 1_048_576
"""In characters of JSON: Claude Desktop's limit."""
SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_AS_IMAGE = 'return {"type": "image", "data": <base64>, "mimeType": "%s"}'
_BESIDE = "return its text, or pictures of its pages, as blocks beside it"


def advise_on_result(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Iterator[Advice]:
    """Return what to change in a result so that all hosts show it. `tool`: the server's declaration, if known."""
    if not isinstance(result.get("content"), list):
        yield Advice(
            "content-missing", "the result", "content is not a list", "always return content, a list of blocks"
        )
    envelope = lift(result)
    for index, block in enumerate(envelope.blocks):
        yield from _on_block(block, f"content[{index}]")
        if block.audience == ("user",):
            now = "it is meant for the user only, and every host shows it to its model"
            yield Advice("audience-ignored", f"content[{index}]", now, "leave out what the model is not to see")
    yield from _on_whole(envelope, tool or {})
    size = wire_chars(result)
    if size > MAX_RESULT:
        change = "return smaller images, or a part at a time"
        yield Advice("result-large", "the result", f"it has {size:,} characters as JSON", change)


def _on_block(block: Block, where: str) -> Iterator[Advice]:
    match block:
        case TextBlock():
            yield from _on_text(block.text, where)
        case ImageBlock():
            yield from _on_image(block, where)
        case AudioBlock():
            now = "almost no host plays sound to its model"
            yield Advice("audio-unseen", where, now, "return what matters in it as text, or as a picture, beside it")
        case ResourceBlock() if block.resource.blob is not None:
            yield from _on_blob(block, where)
        case ResourceBlock():
            yield from _on_text(block.resource.text or "", where)
            if block.resource.text and not block.resource.uri.startswith(SCHEME):  # a page is for the user
                now = "an embedded text: Claude Desktop and some others show their models nothing of it"
                yield Advice("embedded-text", where, now, "return it as a text block")
        case LinkBlock():
            now = f"no host follows the link to {plain(block.uri, 80)}"
            yield Advice("link-unfollowed", where, now, "return what the model is to see as text or image blocks")
        case UnknownBlock():
            now = "a block that clients do not know, or cannot read: it costs them the whole result"
            yield Advice(
                "block-unknown", where, now, "use text, image, audio, resource or resource_link, with all they need"
            )


def _on_text(text: str, where: str) -> Iterator[Advice]:
    if not text.strip():
        yield Advice("text-empty", where, "the text is empty", "leave the block out, or say what happened")
    if leak := sum(map(len, base64_runs(text))):
        change = _AS_IMAGE % "image/png" + ", if it is an image"
        yield Advice("base64-in-text", where, f"{leak:,} characters of base64 stand in the text", change)
    elif len(text) > MAX_TEXT:
        now = f"the text has {len(text):,} characters, and most hosts cut it"
        yield Advice("text-long", where, now, "return less, or take an offset and a limit as arguments")


def _on_image(block: ImageBlock, where: str) -> Iterator[Advice]:
    found = block.found
    if found is None or found.data != block.data:
        now = "its data is not base64" if found is None else "its data is not plain base64, as clients expect it"
        yield Advice("image-broken", where, now, "encode the bytes with standard base64, without data: and line breaks")
    if found is None:
        return
    known = family(found.media_type) == "image"
    if block.mime_type is None:
        change = f'set mimeType = "{found.media_type}"' if known else "set the mimeType of the bytes"
        yield Advice("image-no-type", where, "it has no mimeType, so typed clients refuse the whole result", change)
    elif known and normalise(block.mime_type) != found.media_type:
        now = f"it says {plain(block.mime_type, 60)}, but its bytes are {found.media_type}"
        yield Advice("image-wrong-type", where, now, f'set mimeType = "{found.media_type}"')
    elif not known:
        now = "its bytes are not a known image"
        yield Advice("image-broken", where, now, "make sure that the whole file is read, and encoded once")
    yield from _on_pixels(found, where)


def _on_pixels(found: Found, where: str) -> Iterator[Advice]:
    if family(found.media_type) == "image" and found.media_type not in SHOWN:
        change = "return it as PNG (a vector image: drawn, at about 1,000 pixels)"
        yield Advice("image-type", where, f"almost no host shows {found.media_type}", change)
        return
    if found.pixels is not None and max(found.pixels) > MAX_EDGE:
        change = f"scale it to {MAX_EDGE:,} pixels on its longer edge, or offer parts of it"
        yield Advice(
            "image-large", where, f"{pixel_words(found.pixels)} pixels: hosts scale it down, or pay for it", change
        )
    elif found.byte_size > MAX_BYTES:
        now = f"it has {size_words(found.byte_size)}: some hosts have limits near 1 MB for a result"
        yield Advice("image-large", where, now, "use JPEG for photographs, or fewer pixels")


def _on_blob(block: ResourceBlock, where: str) -> Iterator[Advice]:
    found = block.found
    media_type = (found.media_type if found else None) or normalise(block.resource.mime_type)
    if family(media_type) == "image":
        now = f"an embedded {media_type}: Codex, Cline and many SDKs show it as base64 text"
        yield Advice("embedded-image", where, now, _AS_IMAGE % media_type)
        if found is not None:
            yield from _on_pixels(found, where)
    else:
        now = f"an embedded {media_type or 'file'}: base64 text in many hosts, lost in others"
        yield Advice("document-unseen", where, now, _BESIDE)


def _on_whole(envelope: Envelope, tool: Mapping[str, Any]) -> Iterator[Advice]:
    where, structured = "the result", envelope.has_structured_content and envelope.structured_content is not None
    has_media = any(isinstance(block, ImageBlock | AudioBlock) or _is_blob(block) for block in envelope.blocks)
    has_text = any(_has_text(block) for block in envelope.blocks)
    if structured:
        if not pages(tool):  # a page needs its structured content, bytes included (MCP Apps)
            yield from _on_media_of_structured(envelope, has_media)
        if envelope.blocks:
            is_staying = bool(pages(tool)) or not has_media
            yield from _on_difference(envelope, has_page=bool(pages(tool)), is_staying=is_staying)
        else:
            now = "it stands alone: Gemini CLI, LangChain and others show their models nothing"
            change = "return the same JSON as a text block beside it"
            yield Advice("structured-alone", "structuredContent", now, change)
    elif not structured and promised(tool) and not envelope.is_error:
        now = "the tool declares an outputSchema, and there is no structuredContent: many hosts fail the call"
        yield Advice("structured-missing", where, now, "return structuredContent, or declare no outputSchema")
    if envelope.is_error and has_media:
        now = "it is an error with an image, which many hosts drop"
        yield Advice(
            "image-beside-error", where, now, "leave isError out if the image matters, and say in text what failed"
        )
    if envelope.is_error and not has_text:
        yield Advice("error-without-text", where, "it is an error without a text", "say what failed, and what to do")
    elif has_media and not has_text:
        now = "there is no text beside it"
        yield Advice("text-missing", where, now, "add a text block that says what it is: some models cannot see it")
    if not envelope.blocks and not structured and not envelope.is_error:
        yield Advice("result-empty", where, "it is empty", 'say what happened in text, as "Done: 3 files written"')


def _on_media_of_structured(envelope: Envelope, has_media: bool) -> Iterator[Advice]:
    where = "structuredContent"
    if leak := sum(map(len, base64_runs(json.dumps(envelope.structured_content, ensure_ascii=False, default=str)))):
        change = "leave the bytes out of it, and return them as an image block without structuredContent"
        yield Advice("media-in-structured", where, f"{leak:,} characters of base64 stand in it", change)
    if has_media:
        now = "beside images it hides them: Codex shows its model nothing else"
        yield Advice(
            "structured-hides-media",
            where,
            now,
            "leave it out of results with images, and outputSchema out of the tool",
        )


def _on_difference(envelope: Envelope, *, has_page: bool, is_staying: bool) -> Iterator[Advice]:
    """Compare texts and structured content as the verdict does on a host that shows its model only one of them.

    `is_staying`: no other rule says that structured content is to be left out.
    """
    texts = [block.wire() for block in envelope.blocks if isinstance(block, TextBlock | ResourceBlock)]
    value = envelope.structured_content
    data = words(json.dumps(value, ensure_ascii=False, default=str))
    said = words("\n".join(filter(None, map(_text_of, envelope.blocks))))
    if unsaid := [one for one in openings({"structuredContent": value}) if one not in said]:
        now = f"no text says {_begins(unsaid)}: Gemini CLI and others show their models only the text"
        change = "say it in the text, too" + (", or put what only the page needs into _meta" if has_page else "")
        yield Advice("structured-differs", "structuredContent", now, change)
    untold = [one for one in openings({"content": texts}) if one not in data] if is_staying else []
    if untold:
        now = f"it lacks {_begins(untold)}: Codex and others show their models it in place of the text"
        change = "say it there, too" + ("" if has_page else ", or leave structuredContent out")
        yield Advice("structured-differs", "structuredContent", now, change)


def _begins(openings_found: list[str]) -> str:
    """Name the first of these beginnings, and the number of the others, in the words of a verdict."""
    more = f", and {len(openings_found) - 1} more" if len(openings_found) > 1 else ""
    return f'what begins with "{plain(openings_found[0], 60)}"{more}'


def _has_text(block: Block) -> bool:
    return bool(_text_of(block).strip())


def _text_of(block: Block) -> str:
    if isinstance(block, TextBlock):
        return block.text
    return (block.resource.text or "") if isinstance(block, ResourceBlock) else ""


def _is_blob(block: Block) -> bool:
    return isinstance(block, ResourceBlock) and block.resource.blob is not None
