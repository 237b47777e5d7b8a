"""NeMo Data Designer 0.9.6, measured (2026-11-21) with Anthropic's API and Chat Completions of lax servers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.hosts.simulators.host import RASTER, SDK_CLIENT, SimulatedHost
from gateway.hosts.simulators.results import blocks, malformed
from gateway.hosts.simulators.seen import Seen, SeenPart, SeenText, as_labelled, failed_result


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind Data Designer gets.

    Strict servers of Chat Completions refuse its images: the gateway's model proxy repairs that, not the shape of a
    result. The effect of missing structured content was not measured, so `tool` is not used. Structured content and the
    error flag never arrive (measured).
    """
    if problem := malformed(result):
        return failed_result(f"the row failed: {problem}", flagged=False)
    if any(block["type"] == "image" and len(block["data"].split()) != 1 for block in blocks(result)):
        return failed_result("the row failed: the base64 of an image has line breaks", flagged=False)  # measured
    return Seen(tuple(_part(block) for block in blocks(result)))


def _part(block: Mapping[str, Any]) -> SeenPart:
    """Convert one block; the order is kept (measured)."""
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case "image":  # measured: sent as labelled, unchanged and unchecked
            return as_labelled(block["data"], block["mimeType"])
        case _:  # measured: the text of a Python object, base64 and all
            return SeenText(" ".join(f"{name}={value!r}" for name, value in block.items()), "json")


def see_on_chat(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model gets on OpenAI's Chat Completions, which shows no image of a tool's message (measured)."""
    seen = see(result, tool)
    return replace(seen, parts=tuple(part for part in seen.parts if isinstance(part, SeenText)))


# Measured: the default clientInfo of the Python SDK, of which it takes no version from 2 on.
DATA_DESIGNER = SimulatedHost(
    name="data-designer",
    title="NeMo Data Designer",
    client_info=SDK_CLIENT,
    revision="2025-11-25",
    see=see,
    shows=RASTER,
    profile="data-designer",
)
DATA_DESIGNER_CHAT = replace(
    DATA_DESIGNER,
    name="data-designer-chat",
    title="NeMo Data Designer, OpenAI's Chat Completions",
    see=see_on_chat,
    shows=frozenset(),
    profile="data-designer-chat",
)
