"""LangChain 1.4.7 with langchain-mcp-adapters 0.3.2, measured (2026-11-20, 2026-11-23) with Anthropic's API, OpenAI's
Responses and Chat Completions; `langchain.mcp` and LangGraph do the same. And mcp-use 1.7.1, which asks its model
through LangChain."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.hosts.simulators.block_rules import BlockRules, as_json, as_words, dropped, shown
from gateway.hosts.simulators.host import RASTER, nameless_host
from gateway.hosts.simulators.python_objects import contents_text
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
    """Return what the model behind LangChain gets on Responses.

    No limit on text was found (200,000 characters arrived). A failed result arrives like any other; of the flag,
    OpenAI's APIs are told nothing (measured).
    """
    if problem := malformed(result):
        return failed_result(f"the run ended: {problem}", flagged=False)
    if lacks_structured(result, tool):  # measured: the run ends
        return failed_result(
            "the run ended: Tool has an output schema but did not return structured content", flagged=False
        )
    if any(block["type"] == "audio" for block in blocks(result)):  # measured: the whole run ends
        return failed_result("the run ended: NotImplementedError: AudioContent conversion to LangChain", flagged=False)
    return Seen(tuple(part for block in blocks(result) for part in _parts(block)))  # structured content is not read


def see_handled(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model gets on Anthropic's API of tools whose program has set `handle_tool_error=True`."""
    seen = see(result, tool)
    if seen.error is not None or not is_error(result):
        return seen
    return Seen((SeenText(texts_of(result)),), flagged=True)  # measured: text only, and the flag arrives


def see_on_chat(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model gets on Chat Completions: media is in the tool's message, where the API shows none."""
    seen = see(result, tool)
    if seen.error is None and any(block["type"] == "resource_link" for block in blocks(result)):  # measured
        return failed_result("the run ended: ValueError: Chat Completions does not support file URLs", flagged=False)
    return replace(seen, parts=tuple(part for part in seen.parts if isinstance(part, SeenText)))


def _parts(block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    """Convert one block; the order is kept (measured with Anthropic's API)."""
    if image := image_of(block):  # measured: embedded images too, all as labelled
        return (as_labelled(*image),)
    match block["type"]:
        case "text":
            return (SeenText(block["text"]),)
        case "resource_link":
            media_type = block.get("mimeType") or ""
            if media_type.startswith(IMAGE_PREFIX):
                # Measured: an image whose URL is the link's own, of a scheme that no model API can fetch.
                note = "its URL is one that only the MCP server knows"
                return (SeenImage(block["uri"], media_type, None, note=note),)
            return ()  # measured: a file whose address no model API can fetch
        case _:
            blob = blob_of(block)
            if blob is None:
                return (SeenText(block["resource"]["text"]),)
            if blob[1] == PDF:  # measured
                return (SeenDocument(*blob),)
            return (SeenText(f"[{blob[1]}]", "placeholder"),)  # other types: not measured, so taken as lost


# Measured: the SDK's default clientInfo; initialize at 2025-11-25.
LANGCHAIN = nameless_host("langchain", "LangChain", see, profile="langchain", shows=RASTER | {PDF})
LANGCHAIN_HANDLED = replace(
    LANGCHAIN, name="langchain-handled", title="LangChain, handle_tool_error, Anthropic's API", see=see_handled
)
LANGCHAIN_CHAT = nameless_host("langchain-chat", "LangChain, Chat Completions", see_on_chat, profile="langchain-chat")


def _error_of_mcp_use(result: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    """Measured: the text twice, base64 of images once."""
    return (SeenText(f"Error: {contents_text(blocks(result))}\n{texts_of(result)}", "error"),)


_MCP_USE = BlockRules(
    image=shown(),
    embedded_image=as_words("{uri}", "placeholder"),
    document=shown(),
    audio=as_json,
    blob=as_words("{uri}", "placeholder"),  # not measured, so taken as lost
    link=as_words("{name}: {uri}"),
    error=_error_of_mcp_use,
    flags=False,
)
_MCP_USE_ON_CHAT = replace(_MCP_USE, image=dropped, embedded_image=dropped, document=dropped)
# Its clientInfo was not recorded; its user names the profile of LangChain.
MCP_USE = nameless_host(
    "mcp-use", "mcp-use", _MCP_USE.see, profile="langchain", shows=RASTER | {PDF}, writes_twice=True
)
MCP_USE_CHAT = nameless_host(
    "mcp-use-chat", "mcp-use, Chat Completions", _MCP_USE_ON_CHAT.see, profile="langchain-chat", writes_twice=True
)
