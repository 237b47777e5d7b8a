"""Microsoft Agent Framework 1.23.0 on Responses and on Chat Completions, measured (2026-11-23)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.hosts.simulators.block_rules import BlockRules, as_words, dropped, shown
from gateway.hosts.simulators.host import RASTER, nameless_host
from gateway.hosts.simulators.results import PDF, texts_of
from gateway.hosts.simulators.seen import SeenPart, SeenText


def _error(result: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    """Measured with `include_detailed_errors`; without it, the first words are all."""
    return (SeenText(f"Error: Function failed. Exception: {texts_of(result)}", "error"),)


_ON_RESPONSES = BlockRules(
    image=shown(),
    embedded_image=shown(),
    document=shown(),
    audio=as_words("the request is refused for its input_audio", "placeholder"),
    blob=dropped,  # not measured, so taken as lost
    link=dropped,
    structured="instead",
    error=_error,
    flags=False,
)
_ON_CHAT = replace(_ON_RESPONSES, image=dropped, embedded_image=dropped, document=dropped, audio=dropped)

# The default clientInfo of the Python SDK; the revision was not recorded, it is the SDK's.
AGENT_FRAMEWORK = nameless_host(
    "agent-framework",
    "Microsoft Agent Framework",
    _ON_RESPONSES.see,
    profile="agent-framework",
    shows=RASTER | {PDF},
)
AGENT_FRAMEWORK_CHAT = nameless_host(
    "agent-framework-chat",
    "Microsoft Agent Framework, Chat Completions",
    _ON_CHAT.see,
    profile="agent-framework-chat",
)
