"""GitHub Copilot CLI 1.0.102 on Chat Completions, Responses and Anthropic's API, measured (2026-11-23)."""

from dataclasses import replace

from gateway.hosts.simulators.block_rules import BlockRules, dropped, shown
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.results import PDF

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

# The revision was not recorded: it is that of the TypeScript SDK.
COPILOT_CLI = SimulatedHost(
    name="copilot-cli",
    title="GitHub Copilot CLI",
    client_info={"name": "github-copilot-developer", "version": "1.0.102"},
    revision="2025-11-25",
    see=_RULES.see,
    shows=frozenset(),
)
COPILOT_CLI_RESPONSES = replace(
    COPILOT_CLI,
    name="copilot-cli-responses",
    title="GitHub Copilot CLI, Responses",
    see=_ON_RESPONSES.see,
    shows=frozenset({PDF}),
    profile="copilot-cli-responses",
)
