"""Where each host keeps its configuration: the user's files before the project's, on each platform.

The page of each host in `known_hosts` says the same, unless another source is named here.
"""

from gateway.hosts.config_files.host_format import ConfigPlace
from gateway.hosts.config_files.machine import Machine


def claude_desktop(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Claude Desktop."""
    usual = ConfigPlace(at.in_application_data("Claude", "claude_desktop_config.json"))
    if at.platform != "win32":
        return (usual,)
    # If installed from the Microsoft Store (MSIX), its %APPDATA% is a folder of the package.
    package = at.in_local("Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude")
    return (ConfigPlace(package / "claude_desktop_config.json", only_if_there=True, packaged=True), usual)


def claude_code(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Claude Code."""
    user = at.in_variable("CLAUDE_CONFIG_DIR", ".claude.json") or at.in_home(".claude.json")
    return (ConfigPlace(user), ConfigPlace(at.in_project(".mcp.json"), "project"))


def cursor(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Cursor."""
    return (
        ConfigPlace(at.in_home(".cursor", "mcp.json")),
        ConfigPlace(at.in_project(".cursor", "mcp.json"), "project"),
    )


def vscode(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of VS Code."""
    return (
        ConfigPlace(at.in_application_data("Code", "User", "mcp.json")),
        ConfigPlace(at.in_project(".vscode", "mcp.json"), "project"),
    )


def windsurf(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Windsurf."""
    return (ConfigPlace(at.in_home(".codeium", "windsurf", "mcp_config.json")),)


def zed(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Zed."""
    windows = at.platform == "win32"
    user = at.in_roaming("Zed", "settings.json") if windows else at.in_xdg_config("zed", "settings.json")
    return (ConfigPlace(user), ConfigPlace(at.in_project(".zed", "settings.json"), "project"))


def gemini_cli(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Gemini CLI."""
    home = at.in_variable("GEMINI_CLI_HOME") or at.in_home()
    return (
        ConfigPlace(home / ".gemini" / "settings.json"),
        ConfigPlace(at.in_project(".gemini", "settings.json"), "project"),
    )


def codex(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Codex."""
    user = at.in_variable("CODEX_HOME", "config.toml") or at.in_home(".codex", "config.toml")
    return (ConfigPlace(user), ConfigPlace(at.in_project(".codex", "config.toml"), "project"))


def opencode(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of opencode."""
    return (
        ConfigPlace(at.in_xdg_config("opencode", "opencode.json")),
        ConfigPlace(at.in_xdg_config("opencode", "opencode.jsonc"), only_if_there=True),
        ConfigPlace(at.in_project("opencode.json"), "project"),
        ConfigPlace(at.in_project("opencode.jsonc"), "project"),
    )


def cline(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Cline."""
    file = "cline_mcp_settings.json"
    data = at.in_variable("CLINE_DATA_DIR") or (at.in_variable("CLINE_DIR") or at.in_home(".cline")) / "data"
    shared = at.in_variable("CLINE_MCP_SETTINGS_PATH") or data / "settings" / file
    # The CLI's file, and since 2026 the extension's too (https://github.com/cline/cline/issues/13596); previously, the
    # extension had a file of its own, which it moves there (https://github.com/cline/cline/pull/9630).
    former = at.in_application_data("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", file)
    return (ConfigPlace(shared), ConfigPlace(former, only_if_there=True))


def lm_studio(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of LM Studio."""
    return (
        ConfigPlace(at.in_home(".lmstudio", "mcp.json")),
        # Seen on macOS: https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1371
        ConfigPlace(at.in_home(".cache", "lm-studio", "mcp.json"), only_if_there=True),
    )


def antigravity(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Antigravity."""
    return (
        ConfigPlace(at.in_home(".gemini", "config", "mcp_config.json")),
        # The editor's own file before it shared the CLI's (https://antigravity.google/docs/mcp).
        ConfigPlace(at.in_home(".gemini", "antigravity", "mcp_config.json"), only_if_there=True),
        ConfigPlace(at.in_project(".agents", "mcp_config.json"), "project"),
    )


def kimi_code(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Kimi Code."""
    user = at.in_variable("KIMI_CODE_HOME", "mcp.json") or at.in_home(".kimi-code", "mcp.json")
    return (ConfigPlace(user), ConfigPlace(at.in_project(".kimi-code", "mcp.json"), "project"))


def hermes(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Hermes Agent."""
    # hermes_constants.py of 0.19.0
    usual = at.in_local("hermes") if at.platform == "win32" else at.in_home(".hermes")
    return (ConfigPlace((at.in_variable("HERMES_HOME") or usual) / "config.yaml"),)


def openclaw(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of OpenClaw."""
    folder = at.in_variable("OPENCLAW_STATE_DIR") or at.in_home(".openclaw")
    return (ConfigPlace(at.in_variable("OPENCLAW_CONFIG_PATH") or folder / "openclaw.json"),)


def crush(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Crush."""
    # On Windows, too: internal/home/home.go. Its newer `crushrc` beside it is a script, which nothing can edit exactly.
    user = at.in_variable("CRUSH_GLOBAL_CONFIG", "crush.json") or at.in_xdg_config("crush", "crush.json")
    return (
        ConfigPlace(user),
        ConfigPlace(at.in_project("crush.json"), "project"),
        ConfigPlace(at.in_project(".crush.json"), "project"),
    )


def copilot_cli(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Copilot CLI."""
    user = at.in_variable("COPILOT_HOME", "mcp-config.json") or at.in_home(".copilot", "mcp-config.json")
    # `copilot mcp --help` of 1.0.102; `.mcp.json` is Claude Code's too.
    return (ConfigPlace(user), ConfigPlace(at.in_project(".github", "mcp.json"), "project"))


def kiro(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Kiro."""
    return (
        ConfigPlace(at.in_home(".kiro", "settings", "mcp.json")),
        ConfigPlace(at.in_project(".kiro", "settings", "mcp.json"), "project"),
    )


def goose(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Goose."""
    windows = at.in_roaming("Block", "goose", "config")
    usual = windows if at.platform == "win32" else at.in_xdg_config("goose")
    return (ConfigPlace((at.in_variable("GOOSE_PATH_ROOT", "config") or usual) / "config.yaml"),)


def roo(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Roo Code."""
    storage = at.in_application_data("Code", "User", "globalStorage", "rooveterinaryinc.roo-cline")
    return (
        ConfigPlace(storage / "settings" / "mcp_settings.json"),
        ConfigPlace(at.in_project(".roo", "mcp.json"), "project"),
    )


def kilo(at: Machine) -> tuple[ConfigPlace, ...]:
    """The files of Kilo Code."""
    # Both files are read, by the CLI and by the extension.
    return (
        ConfigPlace(at.in_xdg_config("kilo", "kilo.json")),
        ConfigPlace(at.in_xdg_config("kilo", "kilo.jsonc"), only_if_there=True),
        ConfigPlace(at.in_project("kilo.json"), "project"),
        ConfigPlace(at.in_project("kilo.jsonc"), "project"),
        ConfigPlace(at.in_project(".kilo", "kilo.json"), "project"),
        ConfigPlace(at.in_project(".kilo", "kilo.jsonc"), "project"),
    )
