"""OpenClaw 2026.9.6 on Chat Completions, measured (2026-11-23)."""

from gateway.hosts.simulators.block_rules import BlockRules, as_words, shown
from gateway.hosts.simulators.host import RASTER, SimulatedHost

_RULES = BlockRules(
    image=shown("beside it"),
    audio=as_words("[audio {type}]"),
    document=as_words("{uri}", "placeholder"),
    embedded_image=as_words("{uri}", "placeholder"),
    blob=as_words("{uri}", "placeholder"),
    link=as_words("[{name}] {uri}"),
    structured="first",
    structured_words="structuredContent:\n{}",
    is_in_order=False,
)

# The revision was not recorded: it is that of the TypeScript SDK.
OPENCLAW = SimulatedHost(
    name="openclaw",
    title="OpenClaw",
    client_info={"name": "openclaw-bundle-mcp", "version": "0.0.0"},
    revision="2025-11-25",
    see=_RULES.see,
    shows=RASTER,
)
