"""What a model reads of a result or of a list of tools: texts, and media with what is known of their size."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from gateway.core.model import media_types
from gateway.core.model.base64_text import decoded_size, head
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
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import as_list, as_object, objects_in
from gateway.core.model.media_types import PixelSize

MediumKind = Literal["image", "audio", "video", "document", "other"]
_PDF = "application/pdf"
_FAMILIES: Mapping[str, MediumKind] = {"image": "image", "audio": "audio", "video": "video"}


class Length(NamedTuple):
    """How long sound or video is, in seconds, or a document, in pages; None is unknown."""

    seconds: float | None = None
    pages: int | None = None


Lengths: TypeAlias = Mapping[str, Length]
"""The lengths that are known, by the base64 of the content."""
_NONE_KNOWN: Lengths = {}


@dataclass(frozen=True)
class Medium:
    """Something other than text. What is not known of it (pixels, seconds, pages, size in bytes) is None."""

    kind: MediumKind
    pixels: PixelSize | None = None
    seconds: float | None = None
    pages: int | None = None
    byte_size: int | None = None


@dataclass(frozen=True)
class Content:
    """The texts and the media that a model reads, each in order."""

    texts: Sequence[str] = ()
    media: Sequence[Medium] = ()


def medium_of(found: Found | None, kind: MediumKind = "other", lengths: Lengths = _NONE_KNOWN) -> Medium:
    """Return the medium that bytes are, as far as their type shows; `kind` is used where the type is unknown."""
    if found is None:
        return Medium(kind)
    if found.media_type is not None:
        kind = "document" if found.media_type == _PDF else _FAMILIES.get(media_types.family(found.media_type), kind)
    seconds, pages = lengths.get(found.data, Length())
    return Medium(kind, found.pixels, seconds, pages, found.byte_size)


def content_of_blocks(blocks: Iterable[Block], structured: Any = None, lengths: Lengths = _NONE_KNOWN) -> Content:
    """Return what a model reads that is given these blocks as they are, and structured content as JSON unless None.

    Links and blocks of unknown kinds count as their JSON. `lengths` are those of the media, where they are known.
    """
    texts: list[str] = []
    media: list[Medium] = []
    for block in blocks:
        match block:
            case TextBlock():
                texts.append(block.text)
            case ImageBlock():
                media.append(medium_of(block.found, "image", lengths))
            case AudioBlock():
                media.append(medium_of(block.found, "audio", lengths))
            case ResourceBlock() if block.resource.blob is not None:
                media.append(medium_of(block.found, lengths=lengths))
            case ResourceBlock():
                texts.append(block.resource.text or "")
            case LinkBlock() | UnknownBlock():
                texts.append(compact_json(block.wire()))
    if structured is not None:
        texts.append(compact_json(structured))
    return Content(texts, media)


def content_of_result(
    result: Mapping[str, Any], structured: str = "unknown", lengths: Lengths = _NONE_KNOWN
) -> Content:
    """Return what a host gives its model of a CallToolResult as wire JSON, which may be malformed.

    `structured` is what the host does with structured content (`structured.host` of its profile). Of media only the
    first bytes are read, for their type and size in pixels; `lengths` are those that are known.
    """
    texts: list[str] = []
    media: list[Medium] = []
    for block in objects_in(as_list(result.get("content"))):
        resource = as_object(block.get("resource"))
        match block.get("type"):
            case "text":
                texts.append(text if isinstance(text := block.get("text"), str) else "")
            case "image" | "audio" as kind:
                media.append(medium_in(block.get("data"), "image" if kind == "image" else "audio", lengths))
            case "resource" if "blob" in resource:
                media.append(medium_in(resource.get("blob"), "other", lengths))
            case "resource":
                texts.append(text if isinstance(text := resource.get("text"), str) else "")
            case _:
                texts.append(compact_json(block))
    return with_structured(Content(texts, media), result.get("structuredContent"), structured)


def with_structured(content: Content, value: Any, host: str) -> Content:
    """Return what a model reads of content and of structured content, None if there is none.

    `host` is what its host does with it (`structured.host` of its profile).
    """
    how = "never" if value is None else read_of_structured(host, is_alone=not (content.texts or content.media))
    if how == "never":
        return content
    texts = () if how == "instead" else content.texts
    return Content([*texts, compact_json(value)], [] if host == "replaces-all" else content.media)


def read_of_structured(host: str, *, is_alone: bool) -> Literal["beside", "instead", "never"]:
    """Return whether a model reads structured content `beside` the texts, `instead` of them, or `never`.

    `host` is what the host does with it (`structured.host` of its profile); `is_alone`: the result has no blocks.
    """
    if host in ("replaces-text", "replaces-all"):
        return "instead"
    return "beside" if is_alone or host in ("beside", "dumped") else "never"


def medium_in(data: Any, kind: MediumKind = "other", lengths: Lengths = _NONE_KNOWN) -> Medium:
    """Return the medium that base64 is, by its first bytes."""
    if not isinstance(data, str):
        return Medium(kind)
    sniffed = media_types.inspect(head(data, media_types.HEAD_BYTES))
    found = Found(data=data, byte_size=decoded_size(data), media_type=sniffed.media_type, pixels=sniffed.size)
    return medium_of(found, kind, lengths)


def content_of_tools(tools: Iterable[Mapping[str, Any]]) -> Content:
    """Return what a model reads of a list of tools: the name, description and input schema of each, as JSON.

    What else a tool declares (titles, annotations, output schemas, `_meta`) is for hosts, which do not pass it on.
    """
    return Content([compact_json({key: tool[key] for key in _READ_OF_TOOL if key in tool}) for tool in tools])


_READ_OF_TOOL = ("name", "description", "inputSchema")
