"""OpenAI Agents SDK 0.24.0 on the Responses API, measured (2026-11-20).

It stands for the unknown client: it says that it is `mcp` 0.1.0, as every client does that leaves the Python SDK's
default alone, so nobody can tell which one it is.
"""

import json
from collections.abc import Mapping
from typing import Any

from gateway.simulation.host import RASTER, Host
from gateway.simulation.pictures import look
from gateway.simulation.results import blocks, is_error, lacks_structured, malformed
from gateway.simulation.seen import Seen, SeenImage, SeenPart, SeenText, failed


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """What the model behind the OpenAI Agents SDK gets. No limit on text was found (200,000 characters arrived)."""
    if problem := malformed(result):
        return failed(f"An error occurred while running the tool: {problem}")
    if lacks_structured(result, tool):  # measured
        return failed("An error occurred while running the tool. Please try again.")
    # Structured content is not used by default (measured): alone it gives "[]". Images beside an error are kept.
    return Seen(tuple(_part(block) for block in blocks(result)), flagged=is_error(result))


def _part(block: Mapping[str, Any]) -> SeenPart:
    """One block, order kept (measured)."""
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case "image":  # measured: sent as labelled, unchanged and unchecked
            picture = look(block["data"])
            return SeenImage(block["data"], block["mimeType"], picture and picture.pixels)
        case _:  # measured: sound, embedded resources (images too) and links as JSON, base64 and all
            return SeenText(json.dumps(block), "json")


# Measured: the SDK's default clientInfo, no capabilities. It speaks 2026-07-28 where the transport does; this host is
# the one that connects over SSE, which ends with 2025-11-25.
UNKNOWN = Host(
    name="unknown",
    title="Unknown client",
    client_info={"name": "mcp", "version": "0.1.0"},
    revision="2025-11-25",
    see=see,
    shows=RASTER,
)
