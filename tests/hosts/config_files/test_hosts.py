"""Where hosts keep their configuration, on each platform."""

from pathlib import PurePosixPath

import pytest

from gateway.config.builtin_profiles import load_builtin
from gateway.errors import ConfigError
from gateway.hosts.config_files.hosts import HOSTS, find_host, host_of_file
from gateway.hosts.config_files.launch_command import Launch, is_own
from gateway.hosts.config_files.register_gateway import user_file

CODE = "saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
ROO = "rooveterinaryinc.roo-cline/settings/mcp_settings.json"


def users(host, at):
    return [place.path.as_posix() for place in HOSTS[host].places(at) if place.scope == "user"]


@pytest.mark.parametrize(
    ("host", "linux", "darwin", "win32"),
    [
        (
            "claude-desktop",
            ["/home/me/.config/Claude/claude_desktop_config.json"],
            ["/home/me/Library/Application Support/Claude/claude_desktop_config.json"],
            [
                "C:/Users/me/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/"
                "claude_desktop_config.json",
                "C:/Users/me/AppData/Roaming/Claude/claude_desktop_config.json",
            ],
        ),
        ("claude-code", ["/home/me/.claude.json"], ["/home/me/.claude.json"], ["C:/Users/me/.claude.json"]),
        ("cursor", ["/home/me/.cursor/mcp.json"], ["/home/me/.cursor/mcp.json"], ["C:/Users/me/.cursor/mcp.json"]),
        (
            "vscode",
            ["/home/me/.config/Code/User/mcp.json"],
            ["/home/me/Library/Application Support/Code/User/mcp.json"],
            ["C:/Users/me/AppData/Roaming/Code/User/mcp.json"],
        ),
        (
            "windsurf",
            ["/home/me/.codeium/windsurf/mcp_config.json"],
            ["/home/me/.codeium/windsurf/mcp_config.json"],
            ["C:/Users/me/.codeium/windsurf/mcp_config.json"],
        ),
        (
            "zed",
            ["/home/me/.config/zed/settings.json"],
            ["/home/me/.config/zed/settings.json"],
            ["C:/Users/me/AppData/Roaming/Zed/settings.json"],
        ),
        (
            "gemini-cli",
            ["/home/me/.gemini/settings.json"],
            ["/home/me/.gemini/settings.json"],
            ["C:/Users/me/.gemini/settings.json"],
        ),
        (
            "codex",
            ["/home/me/.codex/config.toml"],
            ["/home/me/.codex/config.toml"],
            ["C:/Users/me/.codex/config.toml"],
        ),
        (
            "opencode",
            ["/home/me/.config/opencode/opencode.json", "/home/me/.config/opencode/opencode.jsonc"],
            ["/home/me/.config/opencode/opencode.json", "/home/me/.config/opencode/opencode.jsonc"],
            ["C:/Users/me/.config/opencode/opencode.json", "C:/Users/me/.config/opencode/opencode.jsonc"],
        ),
        (
            "cline",
            [
                "/home/me/.cline/data/settings/cline_mcp_settings.json",
                f"/home/me/.config/Code/User/globalStorage/{CODE}",
            ],
            [
                "/home/me/.cline/data/settings/cline_mcp_settings.json",
                f"/home/me/Library/Application Support/Code/User/globalStorage/{CODE}",
            ],
            [
                "C:/Users/me/.cline/data/settings/cline_mcp_settings.json",
                f"C:/Users/me/AppData/Roaming/Code/User/globalStorage/{CODE}",
            ],
        ),
        (
            "lm-studio",
            ["/home/me/.lmstudio/mcp.json", "/home/me/.cache/lm-studio/mcp.json"],
            ["/home/me/.lmstudio/mcp.json", "/home/me/.cache/lm-studio/mcp.json"],
            ["C:/Users/me/.lmstudio/mcp.json", "C:/Users/me/.cache/lm-studio/mcp.json"],
        ),
        *(
            (host, *([f"{home}/{file}" for file in files] for home in ("/home/me", "/home/me", "C:/Users/me")))
            for host, files in {
                "antigravity": [".gemini/config/mcp_config.json", ".gemini/antigravity/mcp_config.json"],
                "kimi-code": [".kimi-code/mcp.json"],
                "openclaw": [".openclaw/openclaw.json"],
                "crush": [".config/crush/crush.json"],
                "copilot-cli": [".copilot/mcp-config.json"],
                "kiro": [".kiro/settings/mcp.json"],
                "kilo": [".config/kilo/kilo.json", ".config/kilo/kilo.jsonc"],
            }.items()
        ),
        (
            "hermes",
            ["/home/me/.hermes/config.yaml"],
            ["/home/me/.hermes/config.yaml"],
            ["C:/Users/me/AppData/Local/hermes/config.yaml"],
        ),
        (
            "goose",
            ["/home/me/.config/goose/config.yaml"],
            ["/home/me/.config/goose/config.yaml"],
            ["C:/Users/me/AppData/Roaming/Block/goose/config/config.yaml"],
        ),
        (
            "roo",
            [f"/home/me/.config/Code/User/globalStorage/{ROO}"],
            [f"/home/me/Library/Application Support/Code/User/globalStorage/{ROO}"],
            [f"C:/Users/me/AppData/Roaming/Code/User/globalStorage/{ROO}"],
        ),
    ],
)
def test_every_host_has_its_files_on_every_platform(host, linux, darwin, win32, at):
    assert users(host, at()) == linux
    assert users(host, at(platform="darwin")) == darwin
    assert users(host, at(platform="win32", home=r"C:\Users\me", cwd=r"C:\work")) == win32


@pytest.mark.parametrize(
    ("host", "environ", "expected"),
    [
        ("claude-code", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("codex", {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("gemini-cli", {"GEMINI_CLI_HOME": "/c"}, "/c/.gemini/settings.json"),
        ("cline", {"CLINE_DIR": "/c"}, "/c/data/settings/cline_mcp_settings.json"),
        ("cline", {"CLINE_DATA_DIR": "/c"}, "/c/settings/cline_mcp_settings.json"),
        ("cline", {"CLINE_MCP_SETTINGS_PATH": "/c/x.json"}, "/c/x.json"),
        ("kimi-code", {"KIMI_CODE_HOME": "/c"}, "/c/mcp.json"),
        ("hermes", {"HERMES_HOME": "/c"}, "/c/config.yaml"),
        ("openclaw", {"OPENCLAW_STATE_DIR": "/c"}, "/c/openclaw.json"),
        ("openclaw", {"OPENCLAW_CONFIG_PATH": "/c/x.json", "OPENCLAW_STATE_DIR": "/d"}, "/c/x.json"),
        ("crush", {"CRUSH_GLOBAL_CONFIG": "/c"}, "/c/crush.json"),
        ("copilot-cli", {"COPILOT_HOME": "/c"}, "/c/mcp-config.json"),
        ("goose", {"GOOSE_PATH_ROOT": "/c"}, "/c/config/config.yaml"),
        ("kilo", {"XDG_CONFIG_HOME": "/x"}, "/x/kilo/kilo.json"),
        ("zed", {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json"),
        ("vscode", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
    ],
)
def test_a_variable_that_moves_a_hosts_folder_is_followed(host, environ, expected, at):
    assert users(host, at(environ=environ))[0] == expected


def test_project_files_stand_in_the_working_folder(at):
    found = {place.path.as_posix() for host in HOSTS.values() for place in host.places(at()) if place.scope != "user"}
    assert found == {
        "/work/.mcp.json",
        "/work/.cursor/mcp.json",
        "/work/.vscode/mcp.json",
        "/work/.zed/settings.json",
        "/work/.gemini/settings.json",
        "/work/.codex/config.toml",
        "/work/opencode.json",
        "/work/opencode.jsonc",
        "/work/.agents/mcp_config.json",
        "/work/.kimi-code/mcp.json",
        "/work/crush.json",
        "/work/.crush.json",
        "/work/.github/mcp.json",
        "/work/.kiro/settings/mcp.json",
        "/work/.roo/mcp.json",
        "/work/kilo.json",
        "/work/kilo.jsonc",
        "/work/.kilo/kilo.json",
        "/work/.kilo/kilo.jsonc",
    }


def test_the_file_that_exists_is_taken_before_the_usual_one(at, tmp_path):
    here = at(home=str(tmp_path))
    usual = tmp_path / ".config" / "opencode" / "opencode.json"
    assert user_file(HOSTS["opencode"], here) == usual
    usual.parent.mkdir(parents=True)
    other = usual.with_suffix(".jsonc")
    assert user_file(HOSTS["opencode"], here) == usual
    other.touch()
    assert user_file(HOSTS["opencode"], here) == other
    usual.touch()
    assert user_file(HOSTS["opencode"], here) == usual


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_the_entry_that_is_written_is_recognised_as_the_gateways(host, launch):
    assert is_own(host.entry("gateway", launch))


def test_variables_that_a_host_refuses_are_not_written():
    launch = Launch("/v/mcp-gateway", ("serve",), {"PATH": "/bin", "PYTHONPATH": "/src", "TOKEN": "t"})
    assert HOSTS["goose"].entry("mine", launch)["envs"] == {"TOKEN": "t"}
    assert HOSTS["goose"].entry("mine", launch)["name"] == "mine"
    assert HOSTS["openclaw"].entry("mine", launch)["env"] == {"PATH": "/bin", "TOKEN": "t"}
    assert HOSTS["openclaw"].entry("mine", launch)["requestTimeoutMs"] == 60_000
    assert HOSTS["kilo"].entry("mine", launch)["environment"] == launch.env


def test_a_host_has_the_name_of_its_profile():
    hosts = set(load_builtin()) - {"agent-loop", "default", "passthrough", "inspector"}
    assert {"claude-code", "claude-desktop", "cline", "codex", "gemini-cli"} <= hosts & set(HOSTS)


def test_capitals_in_a_hosts_name_do_not_matter():
    assert find_host("Claude-Code") is find_host("claude-code")


def test_an_unknown_host_names_the_nearest():
    with pytest.raises(ConfigError, match=r"no host 'curser' is known \(did you mean 'cursor'\?\)"):
        find_host("curser")
    with pytest.raises(ConfigError, match="there are: claude-desktop, "):
        find_host("emacs")


@pytest.mark.parametrize(
    ("path", "data", "host"),
    [
        ("/p/.mcp.json", {"mcpServers": {}}, "claude-code"),
        ("/p/.cursor/mcp.json", {"mcpServers": {}}, "cursor"),
        ("/p/xcursor/mcp.json", {"mcpServers": {}}, "file"),
        ("/p/any.json", {"servers": {}}, "vscode"),
        ("/p/settings.json", {"mcp": {"servers": {}}}, "vscode"),
        ("/p/any.json", {"context_servers": {}}, "zed"),
        ("/p/any.toml", {"mcp_servers": {}}, "codex"),
        ("/p/any.json", {"mcp": {}}, "opencode"),
        ("/p/any.yaml", {"extensions": {}}, "goose"),
        ("/p/.hermes/config.yaml", {"mcp_servers": {}}, "hermes"),
        ("/p/openclaw.json", {"mcp": {"servers": {}}}, "openclaw"),
        ("/p/kilo.jsonc", {"mcp": {}}, "kilo"),
        ("/p/crush.json", {"mcp": {}}, "crush"),
        ("/p/.agents/mcp_config.json", {"mcpServers": {}}, "antigravity"),
    ],
)
def test_a_files_format_is_told_by_its_name_and_its_table(path, data, host):
    found = host_of_file(PurePosixPath(path), data)
    assert found is not None
    assert found[0].name == host


def test_a_file_without_servers_is_nobodys():
    assert host_of_file(PurePosixPath("/p/package.json"), {"name": "x"}) is None
