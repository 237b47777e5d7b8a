"""Structured content as text, used only if nothing else in the result says the same."""

import json
from typing import Any

from gateway.core import wording
from gateway.core.model.blocks import AudioBlock, Block, ImageBlock, ResourceBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import is_dict, is_list
from gateway.core.profiles.profile import Profile


def structured_as_text(envelope: Envelope, profile: Profile) -> str | None:
    """Return structured content as text, if it is not sent as such and nothing else in the result says the same.

    It is compact: indented, the same value costs a model about a third more tokens.
    """
    if profile.structured.send == "always" or is_said(envelope):
        return None
    return compact_json(envelope.structured_content)


def is_said(envelope: Envelope) -> bool:
    """Whether the blocks say everything that the structured content, if any, says."""
    value = envelope.structured_content
    return not envelope.has_structured_content or value is None or _says_the_same(value, envelope)


def _says_the_same(value: Any, envelope: Envelope) -> bool:
    texts = [block.text for block in envelope.blocks if isinstance(block, TextBlock)]
    if any(_equals_json(text, value) for text in texts):
        return True
    if not is_dict(value):
        return False
    if len(value) != 1:
        return False
    # The Python SDK wraps anything but an object as {"result": ...}; server-filesystem repeats its content.
    if "result" in value:
        inner: Any = value["result"]
        return any(text == inner or _equals_json(text, inner) for text in texts) or _each_equals(texts, inner)
    return "content" in value and _repeats_blocks(value["content"], envelope)


def _equals_json(text: str, value: Any) -> bool:
    start = text[:50].lstrip()[:1]
    if not start or start not in _JSON_START:
        return False
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


_JSON_START = '{["-0123456789tfn'


def _each_equals(texts: list[str], value: Any) -> bool:
    if not is_list(value):
        return False
    return len(value) == len(texts) > 0 and all(
        text == item or _equals_json(text, item) for text, item in zip(texts, value, strict=True)
    )


def _repeats_blocks(content: Any, envelope: Envelope) -> bool:
    if isinstance(content, str):
        return any(isinstance(block, TextBlock) and block.text == content for block in envelope.blocks)
    if not is_list(content):
        return False
    rest = iter([_as_rescued(block) for block in envelope.blocks])
    # Each item in turn is looked for in the remaining blocks: the order must match, but blocks may be missing.
    return all(any(item == block for block in rest) for item in content)


def _as_rescued(block: Block) -> Any:
    """Return a block's JSON as it reads in structured content after rescue."""
    wire: Any = block.wire()
    found = block.found if isinstance(block, ImageBlock | AudioBlock | ResourceBlock) else None
    if found is None:
        return wire
    words = wording.rescued(found.media_type or "", found.byte_size)
    if isinstance(block, ResourceBlock):
        return {**wire, "resource": {**wire["resource"], "blob": words}}
    return {**wire, "data": words}
