"""Lifting: turning a CallToolResult of any revision, well-formed or not, into an envelope without loss.

Nothing here raises. A bad block affects only itself: it is kept whole, as an unknown block with a note.
"""

from typing import Any, cast

from pydantic import ValidationError

from gateway.core.fact_words import plain
from gateway.core.model import media_types
from gateway.core.model.base64_text import mend
from gateway.core.model.blocks import (
    BLOCK_TYPES,
    AudioBlock,
    Block,
    Found,
    ImageBlock,
    ResourceBlock,
    TextBlock,
    UnknownBlock,
)
from gateway.core.model.contents import found_in
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import is_dict
from gateway.core.model.notes import Note
from gateway.core.model.wire import WireObject

_OWN_MEMBERS = frozenset({"content", "structuredContent"})


def lift(result: WireObject) -> Envelope:
    """Read the JSON object of a result into an envelope.

    Malformed parts are kept in place and noted: content that is not a list stays in `rest`, an unreadable block becomes
    an unknown block, and a media block with broken base64 has no `found`.
    """
    notes: list[Note] = []
    rest = {key: value for key, value in result.items() if key not in _OWN_MEMBERS}
    is_error = rest.get("isError") is True
    if is_error:
        del rest["isError"]
    elif "isError" in rest and not isinstance(rest["isError"], bool):
        notes.append(Note(kind="broken", text="isError is not a boolean; read as no error"))
    content: Any = result.get("content")
    if content is None and "structuredContent" not in result:
        notes.append(Note(kind="mended", text="the result has no content"))
    if content is not None and not isinstance(content, list):
        notes.append(Note(kind="broken", text="content is not a list"))
        content = [content]
    blocks: list[Block] = []
    for index, value in enumerate(cast("list[Any]", content or [])):
        block, block_notes = lift_block(value, index)
        blocks.append(block)
        notes.extend(block_notes)
    return Envelope(
        blocks=tuple(blocks),
        structured_content=result.get("structuredContent"),
        has_structured_content="structuredContent" in result,
        is_error=is_error,
        rest=rest,
        notes=tuple(notes),
    )


def lift_block(value: Any, index: int) -> tuple[Block, tuple[Note, ...]]:
    """Read one block of a result's content; return it with notes of what was wrong with it."""
    kind: Any = value.get("type") if is_dict(value) else None
    model = BLOCK_TYPES.get(kind) if isinstance(kind, str) else None
    if model is None:
        named = f"of unknown type {plain(kind, 60)!r}" if isinstance(kind, str) else "without a type"
        return UnknownBlock(value=value), (Note(kind="broken", text=f"a block {named}", block=index),)
    try:
        block = model.model_validate(value)
    except (ValidationError, RecursionError) as error:
        what = _first_problem(error) if isinstance(error, ValidationError) else "nested too deeply"
        return UnknownBlock(value=value), (Note(kind="broken", text=f"{kind} block: {what}", block=index),)
    if isinstance(block, TextBlock):
        return block, ()
    if isinstance(block, ImageBlock | AudioBlock):
        found, notes = _find(block.data, block.mime_type, index)
        return block.model_copy(update={"found": found}), notes
    if isinstance(block, ResourceBlock) and block.resource.blob is not None:
        found, notes = _find(block.resource.blob, block.resource.mime_type, index)
        return block.model_copy(update={"found": found}), notes
    return block, ()


def _find(data: str, declared: str | None, index: int) -> tuple[Found | None, tuple[Note, ...]]:
    mended = mend(data)
    found = found_in(mended, declared)
    if found is None:
        return None, (Note(kind="broken", text="its data is not base64", block=index),)
    notes: list[Note] = []
    if mended.mended:
        notes.append(Note(kind="mended", text=f"base64 with {', '.join(mended.mended)} put right", block=index))
    if found.media_type != media_types.normalise(declared):
        was = plain(declared, 80) if declared else "nothing"
        notes.append(Note(kind="mended", text=f"its type is {found.media_type or 'unknown'}, not {was}", block=index))
    return found, tuple(notes)


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
    return f"{where}: {first['msg'].lower()}" if where else first["msg"].lower()
