"""The known hosts by name, and the host whose format a file has."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.near_names import which_name
from gateway.core.profiles.match_profile import known_name
from gateway.errors import ConfigError
from gateway.hosts.config_files.host_entries import plain
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.known_hosts import KNOWN_HOSTS

HOSTS: Mapping[str, HostFormat] = {host.name: host for host in KNOWN_HOSTS}
"""Every known host by name; a host's built-in profile has the same name."""

_UNKNOWN = HostFormat("file", "a file", "", ("mcpServers",), "any", lambda at: (), plain)
_TABLES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("mcpServers",), "file"),
    (("servers",), "vscode"),
    (("mcp", "servers"), "vscode"),
    (("context_servers",), "zed"),
    (("mcp_servers",), "codex"),
    (("mcp",), "opencode"),
    (("extensions",), "goose"),
)
_NAMES: tuple[tuple[str, str], ...] = (
    ("claude_desktop_config.json", "claude-desktop"),
    (".claude.json", "claude-code"),
    (".mcp.json", "claude-code"),
    (".cursor/mcp.json", "cursor"),
    (".lmstudio/mcp.json", "lm-studio"),
    ("cline_mcp_settings.json", "cline"),
    ("windsurf/mcp_config.json", "windsurf"),
    (".gemini/settings.json", "gemini-cli"),
    (".gemini/config/mcp_config.json", "antigravity"),
    (".gemini/antigravity/mcp_config.json", "antigravity"),
    (".agents/mcp_config.json", "antigravity"),
    (".kimi-code/mcp.json", "kimi-code"),
    (".hermes/config.yaml", "hermes"),
    ("hermes/config.yaml", "hermes"),
    ("openclaw.json", "openclaw"),
    ("crush.json", "crush"),
    (".crush.json", "crush"),
    (".copilot/mcp-config.json", "copilot-cli"),
    (".github/mcp.json", "copilot-cli"),
    (".kiro/settings/mcp.json", "kiro"),
    ("rooveterinaryinc.roo-cline/settings/mcp_settings.json", "roo"),
    (".roo/mcp.json", "roo"),
    ("kilo.json", "kilo"),
    ("kilo.jsonc", "kilo"),
)


def find_host(name: str) -> HostFormat:
    """Return the host of this name.

    Raises:
        ConfigError: there is none, or it has a profile but no known file; the remedy says what to do instead.
    """
    known = known_name(HOSTS, name)
    if known is not None:
        return HOSTS[known]
    profile = known_name(builtin_profiles(), name)
    if profile is not None and profile not in {host.profile for host in HOSTS.values()}:
        words = f"the configuration file of the host {profile!r} is not known"
        by_hand = "add the gateway there by hand: docs/hosts/README.md"
        hosted = "a host in the cloud takes the address of `mcp-gateway serve --http`: docs/access.md"
        raise ConfigError(words, remedy=f"{by_hand}; {hosted}")
    remedy = which_name(name, HOSTS)
    raise ConfigError(f"no host {name!r} is known", remedy=remedy)


def host_of_file(path: PurePath, data: Mapping[str, Any]) -> tuple[HostFormat, tuple[str, ...]] | None:
    """Return the host whose format a file has, judged by its name or its table of servers, and the table's path."""
    tail = path.as_posix()
    for ending, name in _NAMES:
        if (tail == ending or tail.endswith(f"/{ending}")) and isinstance(data.get(HOSTS[name].table[0]), Mapping):
            return HOSTS[name], HOSTS[name].table
    for table, name in _TABLES:
        value: Any = data
        for key in table:
            value = value.get(key) if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(value, Mapping):
            return HOSTS.get(name, _UNKNOWN), table
    return None
