"""Text in another wrapping: files of text that came as bytes, and drawings whose source is text."""

from gateway.core.model.blocks import Block, ImageBlock, ResourceBlock, TextBlock
from gateway.core.model.contents import decoded_text, is_textual
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note


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
    if found is None or not is_textual(found.media_type, drawings=drawings):
        return block
    text = decoded_text(found)
    if text is None:
        return block
    if isinstance(block, ResourceBlock):
        resource = block.resource.model_copy(update={"text": text, "blob": None})
        return block.model_copy(update={"resource": resource, "found": None})
    return TextBlock(type="text", text=text)


def _type(block: Block) -> str:
    found = block.found if isinstance(block, ImageBlock | ResourceBlock) else None
    return found.media_type or "a file" if found else "a file"
