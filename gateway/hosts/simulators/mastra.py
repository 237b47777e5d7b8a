"""Mastra (@mastra/core 1.71.0, @mastra/mcp 2.0.0), measured (2026-11-23): on Responses and Anthropic's API, and on Chat
Completions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.hosts.simulators.block_rules import BlockRules, as_json, dropped, shown
from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.results import blocks, dump, structured, texts_of
from gateway.hosts.simulators.seen import Seen, SeenPart, SeenText


def _text_of_error(result: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    return (SeenText(f"Error: {texts_of(result)}", "error"),)


_RULES = BlockRules(
    image=shown(),
    audio=dropped,
    document=as_json,
    embedded_image=as_json,
    blob=as_json,
    link=as_json,
    embedded_text=as_json,
    error=_text_of_error,
)
_ON_CHAT = replace(_RULES, image=as_json, audio=as_json)


def see(rules: BlockRules, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind Mastra gets.

    Of a result with structured content, the texts alone arrive, and without any the structured content (by the source,
    `createStructuredToolToModelOutput`; measured: a picture beside it is lost).
    """
    seen = rules.see(result, tool)
    if seen.error is not None or seen.flagged or structured(result) is None:
        return seen
    has_text = any(block["type"] == "text" for block in blocks(result))
    text = SeenText(texts_of(result)) if has_text else SeenText(dump(structured(result)), "structured")
    return Seen((text,))


def _see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    return see(_RULES, result, tool)


def _see_on_chat(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    return see(_ON_CHAT, result, tool)


# Its client has the name that its program gives the server. The revision was not recorded: it is the SDK's.
MASTRA = SimulatedHost(
    name="mastra",
    title="Mastra",
    client_info={"name": "gateway", "version": "1.0.0"},
    revision="2025-11-25",
    see=_see,
    shows=RASTER,
    profile="mastra",
)
MASTRA_CHAT = replace(
    MASTRA,
    name="mastra-chat",
    title="Mastra, Chat Completions",
    see=_see_on_chat,
    shows=frozenset(),
    profile="mastra-chat",
)
