"""AG2 1.2.1 on Chat Completions and on Responses, measured (2026-11-22)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gateway.hosts.simulators.host import RASTER, nameless_host
from gateway.hosts.simulators.python_objects import result_text
from gateway.hosts.simulators.results import (
    IMAGE_PREFIX,
    PDF,
    blob_of,
    blocks,
    dump,
    image_of,
    is_error,
    lacks_structured,
    malformed,
    structured,
)
from gateway.hosts.simulators.seen import Seen, SeenDocument, SeenImage, SeenPart, SeenText, as_labelled, failed_result


def see(media: bool, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind AG2 gets. `media`: its config allows media in tool results (Chat does not).

    No limit on text was found (200,000 characters arrived).
    """
    if problem := malformed(result):
        return failed_result(f"RuntimeError: {problem}", flagged=False)
    if lacks_structured(result, tool):  # measured: the model reads a traceback
        return failed_result("RuntimeError: Tool give has an output schema but did not return structured content")
    if is_error(result):  # measured: base64 and all
        return Seen((SeenText(f"RuntimeError: {result_text(result)}", "json"),), flagged=True)
    if not blocks(result):  # measured: the result as JSON, structured content in it
        return Seen((SeenText(dump(_without_content(result)), "json"),))
    if problem := _unsupported(media, blocks(result)):
        return failed_result(f"the run ended: UnsupportedInputError: Unsupported input type {problem}", flagged=False)
    return Seen(tuple(map(_part, blocks(result))))


def _without_content(result: Mapping[str, Any]) -> dict[str, Any]:
    beside = {} if structured(result) is None else {"structured_content": structured(result)}
    return {"content": [], **beside, "is_error": False, "result_type": "complete"}


def _unsupported(media: bool, content: Any) -> str | None:
    """Return the input that ends the run before its model is asked (measured); None if there is none."""
    for block in content:
        if block["type"] == "audio" and media:
            return "`BinaryInput(audio)` for provider `openai-responses`"
        if block["type"] == "resource_link" and not media:
            return "`UrlInput` for provider `openai-completions`"
        if (block["type"] in ("image", "audio") or blob_of(block)) and not media:
            return "`BinaryInput` for provider `openai-completions`"
    return None


def _part(block: Mapping[str, Any]) -> SeenPart:
    """Convert one block; the order is kept (measured)."""
    if image := image_of(block):  # measured: embedded images too, all as labelled
        return as_labelled(*image)
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case "resource_link":
            media_type = block.get("mimeType") or ""
            if media_type.startswith(IMAGE_PREFIX):
                # Measured: an image whose URL is the link's own, of a scheme that no model API can fetch.
                return SeenImage(block["uri"], media_type, None, note="its URL is one that only the MCP server knows")
            return SeenText("input_file", "placeholder")  # measured: a file at that URL, which no model API can fetch
        case _:
            blob = blob_of(block)
            if blob is None:
                return SeenText(block["resource"]["text"])
            return SeenDocument(*blob)  # measured: a file of any type; what the API takes is PDF


# Measured: the SDK's default clientInfo; initialize at 2025-11-25 (`protocol_mode="legacy"`, its default).
AG2 = nameless_host("ag2", "AG2", partial(see, False), profile="ag2")
AG2_MEDIA = nameless_host("ag2-media", "AG2, Responses", partial(see, True), profile="ag2-media", shows=RASTER | {PDF})
