"""What a model reads of a result or of a list of tools: texts, and media with what is known of their size."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
from gateway.core.model.json_size import compact_json
from gateway.core.model.media_types import PixelSize

MediumKind = Literal["image", "audio", "video", "document", "other"]
_PDF = "application/pdf"
_FAMILIES: Mapping[str, MediumKind] = {"image": "image", "audio": "audio", "video": "video"}


@dataclass(frozen=True)
class Medium:
    """Something other than text. What is not known of it (pixels, seconds, pages) is None."""

    kind: MediumKind
    pixels: PixelSize | None = None
    seconds: float | None = None
    pages: int | None = None


@dataclass(frozen=True)
class Content:
    """The texts and the media that a model reads, each in order."""

    texts: Sequence[str] = ()
    media: Sequence[Medium] = ()


def medium_of(found: Found | None, kind: MediumKind = "other") -> Medium:
    """Return the medium that bytes are, as far as their type shows; `kind` is used where the type is unknown."""
    if found is None or found.media_type is None:
        return Medium(kind)
    if found.media_type == _PDF:
        return Medium("document")
    return Medium(_FAMILIES.get(media_types.family(found.media_type), kind), pixels=found.pixels)


def content_of_blocks(blocks: Iterable[Block], structured: Any = None) -> Content:
    """Return what a model reads that is given these blocks as they are, and structured content as JSON unless None.

    Links and blocks of unknown kinds count as their JSON.
    """
    texts: list[str] = []
    media: list[Medium] = []
    for block in blocks:
        match block:
            case TextBlock():
                texts.append(block.text)
            case ImageBlock():
                media.append(medium_of(block.found, "image"))
            case AudioBlock():
                media.append(medium_of(block.found, "audio"))
            case ResourceBlock() if block.resource.blob is not None:
                media.append(medium_of(block.found))
            case ResourceBlock():
                texts.append(block.resource.text or "")
            case LinkBlock() | UnknownBlock():
                texts.append(compact_json(block.wire()))
    if structured is not None:
        texts.append(compact_json(structured))
    return Content(texts, media)


def content_of_tools(tools: Iterable[Mapping[str, Any]]) -> Content:
    """Return what a model reads of a list of tools: the name, description and input schema of each, as JSON.

    What else a tool declares (titles, annotations, output schemas, `_meta`) is for hosts, which do not pass it on.
    """
    return Content([compact_json({key: tool[key] for key in _READ_OF_TOOL if key in tool}) for tool in tools])


_READ_OF_TOOL = ("name", "description", "inputSchema")
