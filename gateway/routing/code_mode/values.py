"""The results of tools as scripts get them: data, text and media."""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from gateway.core.fact_words import plain
from gateway.core.model.blocks import AudioBlock, Block, Found, ImageBlock, LinkBlock, ResourceBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.results.lift_result import lift
from gateway.routing.code_mode.media import MediaShelf
from gateway.sandbox.faults import ScriptFault
from gateway.sandbox.media import Media

_LONGEST_ERROR = 2_000


async def value_of(result: Mapping[str, Any], shelf: MediaShelf, origin: str | None) -> Any:
    """Return a tool's result as its script gets it.

    That is the structured content if there is any, else the text; an image, sound or file is `Media`. Several parts are
    a list in the result's order, with the structured content first.

    Raises:
        ScriptFault: the tool failed; its own words.
        ContentError: media could not be stored.
    """
    envelope = await to_thread.run_sync(lift, result)
    if envelope.is_error:
        raise ScriptFault(plain(_text_of(envelope) or "it failed without saying why", _LONGEST_ERROR))
    parts = [part for block in envelope.blocks if (part := await _part(block, shelf, origin)) is not None]
    if envelope.has_structured_content:
        found = [part for part in parts if isinstance(part, Media)]
        return [envelope.structured_content, *found] if found else envelope.structured_content
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts) if parts else None
    return parts[0] if len(parts) == 1 else parts


async def _part(block: Block, shelf: MediaShelf, origin: str | None) -> Any:
    match block:
        case TextBlock():
            return block.text
        case ImageBlock() | AudioBlock():
            return await _kept(block.found, None, shelf, origin)
        case ResourceBlock():
            if block.resource.text is not None:
                return block.resource.text
            return await _kept(block.found, block.resource.uri.rsplit("/", 1)[-1] or None, shelf, origin)
        case LinkBlock():
            return block.wire()
        case _:
            return None


async def _kept(found: Found | None, name: str | None, shelf: MediaShelf, origin: str | None) -> Media | None:
    return None if found is None else await shelf.keep(found, name, origin)


def _text_of(envelope: Envelope) -> str:
    return "\n".join(block.text for block in envelope.blocks if isinstance(block, TextBlock))
