"""MCP Inspector 2.3.0, from its source: it shows a person every block natively."""

import base64
from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import (
    PDF,
    VECTOR,
    blob_of,
    blocks,
    dump,
    image_of,
    is_error,
    lacks_structured,
    malformed,
    plain_link_line,
    structured,
)
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenImage, SeenPart, SeenText, failed_result

SOUND = frozenset({"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac"})


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the person at the Inspector gets."""
    if problem := malformed(result):
        return failed_result(f"Invalid tool result: {problem}")
    if lacks_structured(result, tool):  # its TypeScript SDK checks (error -32600)
        return failed_result("Tool has an output schema but did not return structured content")
    parts = [_part(block) for block in blocks(result)]
    if structured(result) is not None:
        # A person opens it as a tree of JSON; it is not text that a model has to read.
        shown = base64.b64encode(dump(structured(result)).encode()).decode()
        parts.append(SeenDocument(shown, "application/json"))
    return Seen(tuple(parts), flagged=is_error(result))


def _part(block: Mapping[str, Any]) -> SeenPart:
    if image := image_of(block):
        picture = look(image[0])
        return SeenImage(image[0], image[1], picture and picture.pixels)
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case "audio":
            return SeenAudio(block["data"], block["mimeType"])
        case "resource_link":
            return SeenText(plain_link_line(block))
        case _:
            blob = blob_of(block)
            return SeenDocument(*blob) if blob else SeenText(block["resource"]["text"])


# Source: the web client passes no name, so the fallback of its client class is presumed; both eras, all capabilities
# switchable.
INSPECTOR = SimulatedHost(
    name="inspector",
    title="MCP Inspector",
    client_info={"name": "mcp-inspector", "version": "0.0.0"},
    revision="2026-07-28",
    capabilities={"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
    see=see,
    for_people=True,
    shows=RASTER | SOUND | {VECTOR, PDF},
)
