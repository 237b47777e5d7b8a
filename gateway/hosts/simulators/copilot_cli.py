"""GitHub Copilot CLI 1.0.102 on Chat Completions, Responses and Anthropic's API, measured (2026-11-27)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gateway.hosts.simulators.block_rules import BlockRules, dropped, shown
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.results import PDF
from gateway.hosts.simulators.seen import Seen, SeenText

TEXT_CHARS = 20_480
"""Measured: as many arrive; of more, the beginning with the path of a file."""
PREVIEW_CHARS = 500
FILE = "/home/user/1795819454312-copilot-tool-output-5b7096f390ab4a19a8a26faadaa98ba8.txt"

_RULES = BlockRules(
    image=dropped,
    embedded_image=dropped,
    audio=dropped,
    document=dropped,
    blob=dropped,
    link=dropped,
    structured="after",
)
_ON_RESPONSES = replace(_RULES, document=shown())


def see(rules: BlockRules, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of Copilot CLI gets."""
    seen = rules.see(result, tool)
    if len(seen.text) <= TEXT_CHARS:
        return seen
    head = f"Output too large to read at once ({len(seen.text) / 1024:.1f} KB). Saved to: {FILE}"
    preview = SeenText(f"{head}\n\nPreview (first {PREVIEW_CHARS} chars):\n{seen.text[:PREVIEW_CHARS]}")
    return replace(seen, parts=(preview, *(part for part in seen.parts if not isinstance(part, SeenText))))


# The revision was not recorded: it is that of the TypeScript SDK.
COPILOT_CLI = SimulatedHost(
    name="copilot-cli",
    title="GitHub Copilot CLI",
    client_info={"name": "github-copilot-developer", "version": "1.0.102"},
    revision="2025-11-25",
    see=partial(see, _RULES),
    shows=frozenset(),
)
COPILOT_CLI_RESPONSES = replace(
    COPILOT_CLI,
    name="copilot-cli-responses",
    title="GitHub Copilot CLI, Responses",
    see=partial(see, _ON_RESPONSES),
    shows=frozenset({PDF}),
    profile="copilot-cli-responses",
)
