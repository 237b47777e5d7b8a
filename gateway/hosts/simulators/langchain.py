"""LangChain 1.4.7 with langchain-mcp-adapters 0.3.2, measured (2026-11-20): the same cells with Anthropic's API,
OpenAI's Responses and Chat Completions."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import RASTER, SDK_CLIENT, SimulatedHost
from gateway.hosts.simulators.results import (
    IMAGE_PREFIX,
    PDF,
    blob_of,
    blocks,
    image_of,
    is_error,
    lacks_structured,
    malformed,
    texts_of,
)
from gateway.hosts.simulators.seen import Seen, SeenDocument, SeenImage, SeenPart, SeenText, as_labelled, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind LangChain gets. No limit on text was found (200,000 characters arrived)."""
    if problem := malformed(result):
        return failed_result(f"the run ended: {problem}", flagged=False)
    if lacks_structured(result, tool):  # measured: the run ends
        return failed_result(
            "the run ended: Tool has an output schema but did not return structured content", flagged=False
        )
    if any(block["type"] == "audio" for block in blocks(result)):  # measured: the whole run ends
        return failed_result("the run ended: NotImplementedError: AudioContent conversion to LangChain", flagged=False)
    if is_error(result):
        # Measured with handle_tool_error=True: text only, the image is dropped, and the flag arrives.
        return Seen((SeenText(texts_of(result)),), flagged=True)
    return Seen(tuple(_part(block) for block in blocks(result)))  # structured content is not read (measured)


def _part(block: Mapping[str, Any]) -> SeenPart:
    """Convert one block; the order is kept (measured with Anthropic's API)."""
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
            return SeenText(f"[file at {block['uri']}]", "placeholder")  # not measured, so taken as lost
        case _:
            blob = blob_of(block)
            if blob is None:
                return SeenText(block["resource"]["text"])
            if blob[1] == PDF:  # measured
                return SeenDocument(*blob)
            return SeenText(f"[{blob[1]}]", "placeholder")  # other types: not measured, so taken as lost


# Measured: the SDK's default clientInfo; initialize at 2025-11-25.
LANGCHAIN = SimulatedHost(
    name="langchain",
    title="LangChain",
    client_info=SDK_CLIENT,
    revision="2025-11-25",
    see=see,
    shows=RASTER | {PDF},
    profile="langchain",
)
