"""A result in a line, and the part of it that can be judged."""

from collections.abc import Mapping
from typing import Any

from gateway.core.fact_words import counted, join_facts, pixel_words, plain
from gateway.core.model.blocks import Block, ResourceBlock, TextBlock, UnknownBlock
from gateway.core.results.lift_result import lift

_LONGEST = 200


def judgeable(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result with only the blocks that can be judged: a server may send anything."""
    blocks = [block.wire() for block in lift(raw).blocks if not isinstance(block, UnknownBlock)]
    return {**raw, "content": blocks}


def describe_result(raw: Mapping[str, Any]) -> str:
    """Describe the content of a result in one line."""
    envelope = lift(raw)
    parts = [_kind(block) for block in envelope.blocks[:8]]
    more = len(envelope.blocks) - len(parts)
    return (
        join_facts(
            "an error" if envelope.is_error else None,
            *parts,
            f"{more} more" if more > 0 else None,
            "structured content" if envelope.has_structured_content else None,
        )
        or "nothing"
    )


def _kind(block: Block) -> str:
    if isinstance(block, TextBlock):
        return f"text of {counted(len(block.text), 'character')}"
    if isinstance(block, UnknownBlock):
        return "a block of no known kind"
    found = getattr(block, "found", None)
    known = plain(found.media_type or "", 60) if found else ""
    kind = "embedded resource" if isinstance(block, ResourceBlock) else block.type.replace("_", " ")
    return " ".join(filter(None, (kind, known, pixel_words(found.pixels) if found and found.pixels else "")))


def first_text(raw: Mapping[str, Any]) -> str:
    """Return the first text of a result that is an error, within a line."""
    texts = [block.text for block in lift(raw).blocks if isinstance(block, TextBlock)]
    return plain(texts[0], _LONGEST) if texts else "it does not say which"
