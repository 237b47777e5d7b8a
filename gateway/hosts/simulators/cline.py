"""Cline CLI 3.0.65, measured (2026-11-20)."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.results import is_error, malformed
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result

MAX_CHARS = 8_000
"""Measured: the whole result as JSON is cut to this, its middle removed (source: message-builder.ts)."""


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of Cline gets: the whole result as JSON text, including media and structured content.

    The effect of missing structured content was not measured, so `tool` is not used.
    """
    if problem := malformed(result):
        return failed_result(f"Invalid tool result: {problem}")
    # Measured: {"content":[{"data":..,"mimeType":..,"type":"image"}],"isError":..}. No member is left out, not even
    # `_meta` and annotations.
    text = json.dumps({"isError": False, **result}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Seen((SeenText(cut_middle(text), "json"),), flagged=is_error(result))


def cut_middle(text: str) -> str:
    """Cut to at most 8,000 characters, keeping head and tail."""
    if len(text) <= MAX_CHARS:
        return text
    # The marker counts what is removed, and its own length depends on that number.
    removed = len(text) - MAX_CHARS + len(_marker(len(text)))
    marker = _marker(removed)
    head = (MAX_CHARS - len(marker) + 1) // 2
    tail = MAX_CHARS - len(marker) - head
    return text[:head] + marker + text[len(text) - tail :]


def _marker(removed: int) -> str:
    return f"\n\n...[truncated {removed} chars]...\n\n"


# Measured: initialize at 2024-11-05, hard-coded in its SDK; no capabilities.
CLINE = SimulatedHost(
    name="cline",
    title="Cline",
    client_info={"name": "@cline/core", "version": "0.0.0"},
    revision="2024-11-05",
    see=see,
    shows=frozenset(),
)
