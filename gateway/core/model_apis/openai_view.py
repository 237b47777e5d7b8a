"""The OpenAI-style view of an envelope: the interchange format that many programs keep in their histories."""

from typing import Any

from gateway.core import fact_words, wording
from gateway.core.model import media_types
from gateway.core.model.blocks import AudioBlock, ImageBlock, LinkBlock, ResourceBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.profiles.profile import Profile, StructuredRules
from gateway.core.results.decisions.structured import structured_as_text

_RULES = Profile(name="openai_view", structured=StructuredRules(send="never"))


def write(envelope: Envelope) -> list[dict[str, Any]]:
    """Write the blocks in order, as `{"type": "text", ...}` and `{"type": "image_url", "image_url": {"url": ...}}`.

    Structured content that no text repeats follows as JSON text. The text of a failed call begins with `ERROR:`. The
    result is never empty.
    """
    parts = [part for block in envelope.blocks for part in _parts(block)]
    structured = structured_as_text(envelope, _RULES)
    if structured is not None:
        parts.append(_text(structured))
    if envelope.is_error:
        return _marked(parts)
    return parts or [_text(wording.NOTHING)]


def _marked(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the parts as those of a failed call in the first text."""
    for index, part in enumerate(parts):
        if part["type"] == "text":
            return [*parts[:index], _text(wording.failed_text(part["text"])), *parts[index + 1 :]]
    return [_text(wording.ERROR_PREFIX + wording.NO_TEXT_ERROR), *parts]


def _parts(block: Any) -> list[dict[str, Any]]:
    match block:
        case TextBlock():
            return [_text(block.text)] if block.text else []
        case ImageBlock() | AudioBlock() | ResourceBlock() if block.found is not None:
            found = block.found
            family = media_types.family(found.media_type)
            if family == "image":
                return [{"type": "image_url", "image_url": {"url": f"data:{found.media_type};base64,{found.data}"}}]
            kind = "document" if family in ("other", "text") else family
            return [_text(wording.marker(kind, _known(found.media_type, found.byte_size)))]
        case ResourceBlock() if block.resource.text is not None:
            return [
                _text(wording.embedded_text(block.resource.uri, block.resource.mime_type or "", block.resource.text))
            ]
        case LinkBlock():
            name = block.title or block.name or ""
            return [_text(wording.link_line(name, block.mime_type or "", block.uri, block.description, readable=False))]
        case _:
            return [_text(wording.marker("content", "it cannot be read"))]


def _known(media_type: str | None, size: int) -> str:
    return fact_words.join_facts(media_type or "unknown type", fact_words.size_words(size))


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}
