"""OpenAI Agents SDK 0.24.0 on the Responses API and on Chat Completions, measured (2026-11-20).

On the Responses API it also stands for the unknown client: it introduces itself as `mcp` 0.1.0, like every client that
keeps the Python SDK's default, so these cannot be distinguished.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gateway.hosts.simulators.host import RASTER, SDK_CLIENT, SimulatedHost
from gateway.hosts.simulators.results import blocks, dump, lacks_structured, malformed, structured
from gateway.hosts.simulators.seen import Seen, SeenPart, SeenText, as_labelled, failed_result


@dataclass(frozen=True)
class Traits:
    """Whether images arrive at all (not on Chat Completions), and `use_structured_content` of the server."""

    images: bool = True
    structured: bool = False


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind the Agents SDK gets. No limit on text was found (200,000 characters arrived)."""
    if problem := malformed(result):
        return failed_result(f"An error occurred while running the tool: {problem}")
    if lacks_structured(result, tool):  # measured
        return failed_result("An error occurred while running the tool. Please try again.")
    if traits.structured and structured(result) is not None:  # measured: replaces everything
        return Seen((SeenText(dump(structured(result)), "structured"),))
    # Else structured content is not used (measured): alone it gives "[]". Images beside an error are kept; the flag is
    # lost (measured), so nothing is flagged.
    parts = [part for block in blocks(result) for part in _parts(traits, block)]
    if not parts and blocks(result):  # measured: an image alone, on Chat Completions
        parts = [SeenText("[tool output omitted]", "placeholder")]
    return Seen(tuple(parts))


def _parts(traits: Traits, block: Mapping[str, Any]) -> list[SeenPart]:
    """Convert one block; the order is kept (measured)."""
    match block["type"]:
        case "text":
            return [SeenText(block["text"])]
        case "image":  # measured: sent as labelled, unchanged and unchecked; on Chat Completions gone without a word
            return [as_labelled(block["data"], block["mimeType"])] if traits.images else []
        case _:  # measured: sound, embedded resources (images too) and links as JSON, base64 and all
            return [SeenText(json.dumps(block), "json")]


# Measured: the SDK's default clientInfo, no capabilities; server/discover at 2026-07-28.
OPENAI_AGENTS = SimulatedHost(
    name="openai-agents",
    title="OpenAI Agents SDK",
    client_info=SDK_CLIENT,
    revision="2026-07-28",
    see=partial(see, Traits()),
    shows=RASTER,
    profile="openai-agents",
)
OPENAI_AGENTS_STRUCTURED = replace(
    OPENAI_AGENTS,
    name="openai-agents-struct",
    title="OpenAI Agents SDK, use_structured_content",
    see=partial(see, Traits(structured=True)),
)
OPENAI_AGENTS_CHAT = replace(
    OPENAI_AGENTS,
    name="openai-agents-chat",
    title="OpenAI Agents SDK, Chat Completions",
    see=partial(see, Traits(images=False)),
    shows=frozenset(),
    profile="openai-agents-chat",
)
# This one is the client that connects over SSE, which ends with 2025-11-25.
UNKNOWN = replace(OPENAI_AGENTS, name="unknown", title="Unknown client", revision="2025-11-25", profile=None)
