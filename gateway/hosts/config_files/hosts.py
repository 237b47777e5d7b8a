"""The hosts whose configuration files are known: where the files are, and the format of a server in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.near_names import which_name
from gateway.core.profiles.match_profile import known_name
from gateway.errors import ConfigError
from gateway.hosts.config_files.documents import Syntax
from gateway.hosts.config_files.launch_command import Launch
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.variables import Dialect


@dataclass(frozen=True)
class ConfigPlace:
    """A file that a host may read.

    `only_if_there`: it is never created, except that a `packaged` file (in the private folder of an installed package)
    is created if that folder exists.
    """

    path: PurePath
    scope: Literal["user", "project"] = "user"
    only_if_there: bool = False
    packaged: bool = False


@dataclass(frozen=True)
class HostFormat:
    """A host's configuration format.

    `table` is the path of its servers; `variables` the dialect of references in its values; `timeout_seconds` the
    length of one unit of its `timeout` for a call, if it has one. `entry` writes a server, `places` names the files,
    the user's before the project's. `profile` is its built-in profile, if that has another name.
    """

    name: str
    title: str
    page: str
    table: tuple[str, ...]
    variables: Dialect
    places: Callable[[Machine], tuple[ConfigPlace, ...]]
    entry: Callable[[Launch], dict[str, Any]]
    syntax: Syntax = "json"
    timeout_seconds: float | None = None
    after: str = "restart it"
    profile: str | None = None


def _plain(launch: Launch) -> dict[str, Any]:
    return {"command": launch.command, "args": list(launch.args), "env": dict(launch.env)}


def _typed(launch: Launch) -> dict[str, Any]:
    return {"type": "stdio", **_plain(launch)}


def _opencode_entry(launch: Launch) -> dict[str, Any]:
    return {
        "type": "local",
        "command": [launch.command, *launch.args],
        "environment": dict(launch.env),
        "enabled": True,
    }


def _claude_desktop(at: Machine) -> tuple[ConfigPlace, ...]:
    usual = ConfigPlace(at.in_application_data("Claude", "claude_desktop_config.json"))
    if at.platform != "win32":
        return (usual,)
    # If installed from the Microsoft Store (MSIX), its %APPDATA% is a folder of the package.
    package = at.in_local("Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude")
    return (ConfigPlace(package / "claude_desktop_config.json", only_if_there=True, packaged=True), usual)


def _claude_code(at: Machine) -> tuple[ConfigPlace, ...]:
    user = at.in_variable("CLAUDE_CONFIG_DIR", ".claude.json") or at.in_home(".claude.json")
    return (ConfigPlace(user), ConfigPlace(at.in_project(".mcp.json"), "project"))


def _cursor(at: Machine) -> tuple[ConfigPlace, ...]:
    return (
        ConfigPlace(at.in_home(".cursor", "mcp.json")),
        ConfigPlace(at.in_project(".cursor", "mcp.json"), "project"),
    )


def _vscode(at: Machine) -> tuple[ConfigPlace, ...]:
    return (
        ConfigPlace(at.in_application_data("Code", "User", "mcp.json")),
        ConfigPlace(at.in_project(".vscode", "mcp.json"), "project"),
    )


def _windsurf(at: Machine) -> tuple[ConfigPlace, ...]:
    return (ConfigPlace(at.in_home(".codeium", "windsurf", "mcp_config.json")),)


def _zed(at: Machine) -> tuple[ConfigPlace, ...]:
    windows = at.platform == "win32"
    user = at.in_roaming("Zed", "settings.json") if windows else at.in_xdg_config("zed", "settings.json")
    return (ConfigPlace(user), ConfigPlace(at.in_project(".zed", "settings.json"), "project"))


def _gemini_cli(at: Machine) -> tuple[ConfigPlace, ...]:
    home = at.in_variable("GEMINI_CLI_HOME") or at.in_home()
    return (
        ConfigPlace(home / ".gemini" / "settings.json"),
        ConfigPlace(at.in_project(".gemini", "settings.json"), "project"),
    )


def _codex(at: Machine) -> tuple[ConfigPlace, ...]:
    user = at.in_variable("CODEX_HOME", "config.toml") or at.in_home(".codex", "config.toml")
    return (ConfigPlace(user), ConfigPlace(at.in_project(".codex", "config.toml"), "project"))


def _opencode(at: Machine) -> tuple[ConfigPlace, ...]:
    return (
        ConfigPlace(at.in_xdg_config("opencode", "opencode.json")),
        ConfigPlace(at.in_xdg_config("opencode", "opencode.jsonc"), only_if_there=True),
        ConfigPlace(at.in_project("opencode.json"), "project"),
        ConfigPlace(at.in_project("opencode.jsonc"), "project"),
    )


def _cline(at: Machine) -> tuple[ConfigPlace, ...]:
    file = "cline_mcp_settings.json"
    data = at.in_variable("CLINE_DATA_DIR") or (at.in_variable("CLINE_DIR") or at.in_home(".cline")) / "data"
    shared = at.in_variable("CLINE_MCP_SETTINGS_PATH") or data / "settings" / file
    # The CLI's file, and since 2026 the extension's too (https://github.com/cline/cline/issues/13596); previously, the
    # extension had a file of its own, which it moves there (https://github.com/cline/cline/pull/9630).
    former = at.in_application_data("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", file)
    return (ConfigPlace(shared), ConfigPlace(former, only_if_there=True))


def _lm_studio(at: Machine) -> tuple[ConfigPlace, ...]:
    return (
        ConfigPlace(at.in_home(".lmstudio", "mcp.json")),
        # Seen on macOS: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1371
        ConfigPlace(at.in_home(".cache", "lm-studio", "mcp.json"), only_if_there=True),
    )


_SERVERS = ("mcpServers",)

_ALL = (
    HostFormat(
        "claude-desktop",
        "Claude Desktop",
        "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        _SERVERS,
        "none",
        _claude_desktop,
        _plain,
        after="quit it and start it again",
    ),
    HostFormat(
        "claude-code",
        "Claude Code",
        "https://code.claude.com/docs/en/mcp",
        _SERVERS,
        "claude-code",
        _claude_code,
        _typed,
        after="start a new session",
    ),
    HostFormat(
        "cursor",
        "Cursor",
        "https://cursor.com/docs/context/mcp",
        _SERVERS,
        "cursor",
        _cursor,
        _plain,
        after="switch the server on in its MCP settings",
    ),
    HostFormat(
        "vscode",
        "VS Code",
        "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        ("servers",),
        "vscode",
        _vscode,
        _typed,
        after="start the server in it (MCP: List Servers)",
        profile="vscode-copilot",
    ),
    HostFormat(
        "windsurf",
        "Windsurf",
        "https://docs.windsurf.com/windsurf/cascade/mcp",
        _SERVERS,
        "windsurf",
        _windsurf,
        _plain,
        after="refresh its MCP servers",
    ),
    HostFormat(
        "zed",
        "Zed",
        "https://zed.dev/docs/ai/mcp",
        ("context_servers",),
        "none",
        _zed,
        _plain,
        after="it reads its settings at once",
    ),
    HostFormat(
        "gemini-cli",
        "Gemini CLI",
        "https://geminicli.com/docs/tools/mcp-server",
        _SERVERS,
        "gemini-cli",
        _gemini_cli,
        _plain,
        timeout_seconds=0.001,
        after="start a new session",
    ),
    HostFormat(
        "codex",
        "Codex",
        "https://developers.openai.com/codex/mcp",
        ("mcp_servers",),
        "none",
        _codex,
        _plain,
        syntax="toml",
        after="start a new session",
    ),
    HostFormat(
        "opencode",
        "opencode",
        "https://opencode.ai/docs/mcp-servers",
        ("mcp",),
        "opencode",
        _opencode,
        _opencode_entry,
        after="start it again",
    ),
    HostFormat(
        "cline",
        "Cline",
        "https://docs.cline.bot/mcp/configuring-mcp-servers",
        _SERVERS,
        "cline",
        _cline,
        _plain,
        timeout_seconds=1.0,
        after="it reads the file at once",
    ),
    HostFormat(
        "lm-studio",
        "LM Studio",
        "https://lmstudio.ai/docs/app/mcp",
        _SERVERS,
        "none",
        _lm_studio,
        _plain,
        after="it reads the file at once",
    ),
)

HOSTS: Mapping[str, HostFormat] = {host.name: host for host in _ALL}
"""Every known host by name; a host's built-in profile has the same name."""

_UNKNOWN = HostFormat("file", "a file", "", _SERVERS, "any", lambda at: (), _plain)
_TABLES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("mcpServers",), "file"),
    (("servers",), "vscode"),
    (("mcp", "servers"), "vscode"),
    (("context_servers",), "zed"),
    (("mcp_servers",), "codex"),
    (("mcp",), "opencode"),
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
