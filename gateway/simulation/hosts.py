"""The simulated hosts, by the name of the profile that each should be given."""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.simulation.claude_code import CLAUDE_CODE
from gateway.simulation.claude_desktop import CLAUDE_DESKTOP
from gateway.simulation.cline import CLINE
from gateway.simulation.codex import CODEX
from gateway.simulation.gemini_cli import GEMINI_CLI
from gateway.simulation.host import Host
from gateway.simulation.inspector import INSPECTOR
from gateway.simulation.openai_agents import UNKNOWN

SIMULATORS: Mapping[str, Host] = MappingProxyType(
    {host.name: host for host in (CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, GEMINI_CLI, CLINE, UNKNOWN, INSPECTOR)}
)
"""Every simulated host. `unknown` is the one that the gateway serves with its `default` profile."""
