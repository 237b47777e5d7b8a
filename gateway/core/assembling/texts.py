"""Text in another wrapping: files of text that came as bytes, and drawings whose source is text."""

import binascii

from gateway.core.model.blocks import Block, Found, ImageBlock, ResourceBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.media_types import family
from gateway.core.model.notes import Note

_MOST_BYTES = 400_000
_SVG = "image/svg+xml"
_TEXTUAL = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"}
)
_UNPRINTABLE = frozenset(chr(code) for code in range(32)) - frozenset("\t\n\r\f")


def with_texts(envelope: Envelope, *, drawings: bool) -> Envelope:
    """The same envelope with files of text as text; with `drawings`, SVG as its source too."""
    blocks = [_as_text(block, drawings) for block in envelope.blocks]
    notes = [
        Note(kind="converted", text=f"{_type(old)} read as text", block=index)
        for index, (old, new) in enumerate(zip(envelope.blocks, blocks, strict=True))
        if new is not old
    ]
    return envelope.model_copy(update={"blocks": tuple(blocks)}).with_note(*notes) if notes else envelope


def _as_text(block: Block, drawings: bool) -> Block:
    found = block.found if isinstance(block, ImageBlock | ResourceBlock) else None
    if found is None or not _is_text(found.media_type, drawings) or (text := _decoded(found)) is None:
        return block
    if isinstance(block, ResourceBlock):
        resource = block.resource.model_copy(update={"text": text, "blob": None})
        return block.model_copy(update={"resource": resource, "found": None})
    return TextBlock(type="text", text=text)


def _is_text(media_type: str | None, drawings: bool) -> bool:
    if media_type == _SVG:
        return drawings
    return media_type in _TEXTUAL or family(media_type) == "text" or (media_type or "").endswith(("+json", "+xml"))


def _decoded(found: Found) -> str | None:
    if found.byte_size > _MOST_BYTES:
        return None
    try:
        text = binascii.a2b_base64(found.data).decode("utf-8-sig")
    except ValueError:
        return None
    return None if _UNPRINTABLE.intersection(text) else text


def _type(block: Block) -> str:
    found = block.found if isinstance(block, ImageBlock | ResourceBlock) else None
    return found.media_type or "a file" if found else "a file"
