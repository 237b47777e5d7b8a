"""Claude Desktop, from user reports (not measured). Unknown behaviour counts as loss, so that nothing relies on it."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import blocks, dump, is_error, lacks_structured, malformed, structured
from gateway.hosts.simulators.seen import Seen, SeenImage, SeenPart, SeenText, failed_result

MAX_CHARS = 1_048_576
"""User reports: "result exceeds maximum length of 1048576" (fastmcp#1036, claude-code#66519)."""


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of Claude Desktop gets."""
    if problem := malformed(result):
        return failed_result(f"Invalid tool result: {problem}")
    if lacks_structured(result, tool):
        # Not reported for this host; clients on the TypeScript SDK, like this one, fail such a call (error -32600).
        return failed_result("Tool has an output schema but did not return structured content")
    if len(dump(result)) > MAX_CHARS:
        return failed_result(f"result exceeds maximum length of {MAX_CHARS}")
    parts = [_part(block) for block in blocks(result)]
    if structured(result) is not None:  # user report (claude-code#54737): content and structured content both arrive
        parts.append(SeenText(dump(structured(result)), "structured"))
    return Seen(tuple(parts), flagged=is_error(result))


def _part(block: Mapping[str, Any]) -> SeenPart:
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case "image":
            # User reports (claude-ai-mcp#643 and many more): shown at once to the user, to the model one turn later.
            picture = look(block["data"])
            return SeenImage(block["data"], block["mimeType"], picture and picture.pixels, "next turn")
        case kind:  # sound, embedded resources and links: not known
            return SeenText(f"[{kind}: what this host does with it is not known]", "placeholder")


# Name and version: a wire log and the client registries of 2026. Its revision is not reported; that it takes structured
# content and MCP Apps means a recent one, and claude.ai, its sibling, speaks 2025-11-25.
CLAUDE_DESKTOP = SimulatedHost(
    name="claude-desktop",
    title="Claude Desktop",
    client_info={"name": "claude-ai", "version": "0.1.0"},
    revision="2025-11-25",
    see=see,
    shows=RASTER,
)
