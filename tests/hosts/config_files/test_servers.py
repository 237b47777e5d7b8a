"""Every host's real file, read as upstreams: values and environment as they were."""

import json

import pytest

from gateway.config.expansion import expand
from gateway.config.schema import Settings
from gateway.errors import ConfigError
from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.servers import read_servers

UVX = {"command": "uvx", "args": ["mcp-server-fetch"]}


def read(document, host, at, **more):
    return {server.name: server for server in read_servers(document, HOSTS[host], at, **more)}


def one(host, entry, at, **more):
    text = json.dumps({HOSTS[host].table[0]: {"it": entry}})
    return read(Document(text, "json", "FILE"), host, at, **more)["it"]


@pytest.mark.parametrize(
    ("host", "upstreams"),
    [
        (
            "claude-desktop",
            {
                "filesystem": {
                    "command": "npx",
                    "args": [
                        "-y",
                        "@modelcontextprotocol/server-filesystem",
                        "/Users/me/Desktop",
                        "$${HOME}/literal",
                    ],
                    "env": {"LOG_LEVEL": "debug"},
                },
                "my notes!": {"command": "/opt/notes/bin/notes-mcp"},
            },
        ),
        (
            "claude-code",
            {
                "github": {
                    "url": "${GITHUB_MCP:-https://api.githubcopilot.com/mcp/}",
                    "transport": "http",
                    "headers": {"Authorization": "Bearer ${GITHUB_TOKEN:-}"},
                },
                "socket": None,
                "database": {
                    "command": "/home/me/shop/bin/db-mcp",
                    "args": ["--dsn", "postgres://localhost/shop"],
                    "cwd": "/home/me/shop",
                },
            },
        ),
        (
            "cursor",
            {
                "playwright": {
                    "command": "npx",
                    "args": ["@playwright/mcp@latest", "--output-dir", "/home/me/shots"],
                    "env": {"TOKEN": "${PLAYWRIGHT_TOKEN:-}", "LITERAL": "$${NOT_A_VARIABLE}"},
                },
                "linear": {"url": "https://mcp.linear.app/sse"},
            },
        ),
        (
            "vscode",
            {
                "Perplexity": {
                    "command": "docker",
                    "args": ["run", "-i", "--rm", "-e", "PERPLEXITY_API_KEY", "mcp/perplexity-ask"],
                    "env": {"PERPLEXITY_API_KEY": "${PERPLEXITY_KEY:-}"},
                    "enabled": False,
                },
                "fetch": UVX,
            },
        ),
        (
            "windsurf",
            {
                "figma": {
                    "url": "https://mcp.figma.com/mcp",
                    "headers": {"API_KEY": "Bearer ${FIGMA_TOKEN:-}"},
                    "tools": {"exclude": ["get_image"]},
                    "enabled": False,
                }
            },
        ),
        (
            "zed",
            {
                "old-form": {"command": "node", "args": ["/srv/old.js", "--stdio"], "env": {"A": "1"}},
                "mcp-server-context7": None,
                "new-form": {"command": "uv", "args": ["run", "main.py"], "enabled": False},
            },
        ),
        (
            "gemini-cli",
            {
                "pythonTools": {
                    "command": "python",
                    "args": ["-m", "my_mcp_server", "--port", "8080"],
                    "cwd": "/srv/mcp",
                    "env": {
                        "DATABASE_URL": "${DB_CONNECTION_STRING:-$DB_CONNECTION_STRING}",
                        "API_KEY": "${EXTERNAL_API_KEY:-}",
                    },
                    "timeout": {"call": 15.0, "idle": 15.0},
                    "tools": {"include": ["safe_tool", "file_reader"]},
                },
                "httpServer": {
                    "url": "http://localhost:3000/mcp",
                    "transport": "http",
                    "headers": {"X-Cost": "5$ a call"},
                },
            },
        ),
        (
            "codex",
            {
                "context7": {
                    "command": "npx",
                    "args": ["-y", "@upstash/context7-mcp"],
                    "env": {"MODE": "$${literal}", "CONTEXT7_API_KEY": "${CONTEXT7_API_KEY:-}"},
                },
                "figma": {
                    "url": "https://mcp.figma.com/mcp",
                    "headers": {"X-Figma-Region": "us-east-1", "Authorization": "Bearer ${FIGMA_OAUTH_TOKEN:-}"},
                    "timeout": {"call": 45.0, "idle": 45.0},
                    "enabled": False,
                },
            },
        ),
        (
            "opencode",
            {
                "everything": {
                    "command": "npx",
                    "args": ["-y", "@modelcontextprotocol/server-everything"],
                    "env": {"KEY": "${EVERYTHING_KEY:-}", "FILE": "{file:~/.secret}"},
                },
                "sentry": {"url": "https://mcp.sentry.dev/mcp"},
            },
        ),
        (
            "cline",
            {
                "weather": {
                    "command": "uv",
                    "args": ["--directory", "/home/me/weather", "run", "server.py"],
                    "timeout": {"call": 60.0, "idle": 60.0},
                },
                "remote": {
                    "url": "https://example.com/mcp",
                    "transport": "http",
                    "headers": {"Authorization": "Bearer ${REMOTE_TOKEN:-}"},
                },
            },
        ),
        (
            "lm-studio",
            {
                "hf-mcp-server": {
                    "url": "https://huggingface.co/mcp",
                    "headers": {"Authorization": "Bearer hf_$${not}_replaced"},
                }
            },
        ),
    ],
)
def test_a_hosts_real_file_becomes_upstreams_that_the_gateway_accepts(host, upstreams, sample, at):
    servers = read(sample(host), host, at())
    assert {name: server.upstream for name, server in servers.items()} == upstreams
    for upstream in upstreams.values():
        if upstream is not None:
            document, problems = expand({"upstreams": {"it": upstream}}, {})
            assert problems == ()
            Settings.model_validate(document)


def test_what_cannot_come_along_is_said(sample, at):
    assert read(sample("claude-code"), "claude-code", at())["socket"].obstacle == (
        "speaks ws, which the gateway does not"
    )
    assert read(sample("zed"), "zed", at())["mcp-server-context7"].obstacle == (
        "comes with an extension whose program only the host knows"
    )
    assert read(sample("opencode"), "opencode", at())["everything"].remarks == (
        "not set at the moment: EVERYTHING_KEY",
        "nothing stands for {file:~/.secret} behind the gateway: write the value out",
    )
    assert read(sample("vscode"), "vscode", at())["Perplexity"].remarks == (
        "its host asks for a value: set PERPLEXITY_KEY, then enabled = true",
    )
    known = at(environ={"PERPLEXITY_KEY": "k", "EVERYTHING_KEY": "k"})
    assert "enabled" not in (read(sample("vscode"), "vscode", known)["Perplexity"].upstream or {})
    assert one("cursor", {"command": "x", "envFile": ".env", "auth": {"a": 1}}, at()).remarks == (
        "not carried over: envFile, auth",
    )


@pytest.mark.parametrize(
    ("entry", "obstacle"),
    [
        ({}, "has neither a command nor a url"),
        ("npx", "is not an object"),
        ({"command": "x", "args": "a b"}, "args is not a list"),
        ({"command": "x", "env": {"A": ["b"]}}, "env.A must be text in quotes"),
        ({"command": "\ud800"}, "holds a value that cannot be written: 'utf-8' codec can't encode character"),
        ({"url": "stdio://x"}, "url must begin with http:// or https://"),
        ({"url": "${NOWHERE}/mcp"}, "url must begin with http:// or https://"),
    ],
)
def test_a_server_that_the_gateway_could_not_call_has_an_obstacle(entry, obstacle, at):
    server = one("claude-code", entry, at())
    assert (server.upstream, server.obstacle[: len(obstacle)]) == (None, obstacle)


def test_an_address_that_only_this_environment_knows_would_stop_the_gateway_elsewhere(at):
    server = one("claude-code", {"url": "${BASE}/mcp"}, at(environ={"BASE": "https://example.com"}))
    assert server.obstacle == "its address needs a variable that other hosts do not have: write the address out"


def test_numbers_and_booleans_are_spelled_as_a_process_gets_them(at):
    server = one("cursor", {"command": "x", "args": [1, True], "env": {"A": 2.5, "B": False, "C": None}}, at())
    assert server.upstream == {"command": "x", "args": ["1", "true"], "env": {"A": "2.5", "B": "false"}}


def test_a_projects_server_is_started_in_its_project(at):
    server = one("cursor", {"command": "tools/run", "cwd": "sub"}, at(), project="/work")
    assert server.upstream == {"command": "/work/tools/run", "cwd": "/work/sub"}
    server = one("cursor", {"command": "/bin/x", "cwd": "${workspaceFolder}/a"}, at(), project="/work")
    assert server.upstream == {"command": "/bin/x", "cwd": "/work/a"}
    windows = at(platform="win32", home=r"C:\Users\me", cwd=r"C:\work")
    server = one("vscode", {"command": r"tools\run.cmd"}, windows, project=r"C:\work")
    assert server.upstream == {"command": r"C:\work\tools\run.cmd", "cwd": r"C:\work"}


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "/venv/bin/mcp-gateway", "args": ["serve", "--config", "/x.toml"]},
        {"command": "C:\\venv\\Scripts\\mcp-gateway.exe", "args": ["serve"]},
        {"command": "python3", "args": ["-m", "gateway", "serve"]},
        {"command": "uvx", "args": ["mcp-multimodal-gateway==0.1.0", "serve"]},
        {"command": ["mcp-gateway", "serve"], "type": "local"},
        {"type": "sse", "url": "http://127.0.0.1:8484/sse"},
        {"url": "http://localhost:8484/mcp/codex"},
    ],
)
def test_the_gateways_own_entry_is_recognised(entry, at):
    assert one("cursor", entry, at()).own


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "docker", "args": ["mcp", "gateway", "run"]},
        {"command": "npx", "args": ["serve", "mcp-gateway"]},
        {"command": "python", "args": ["-m", "gateway_of_others", "serve"]},
        {"url": "http://127.0.0.1:3000/mcp"},
        {"url": "https://example.com:8484/mcp"},
        {"url": "http://[broken"},
    ],
)
def test_other_gateways_are_servers_like_any(entry, at):
    assert not one("cursor", entry, at()).own


@pytest.mark.parametrize(
    ("host", "data"),
    [
        ("gemini-cli", {"mcp": {"excluded": ["x"]}, "mcpServers": {"x": {"command": "x"}}}),
        ("claude-code", {"projects": {"/p": {"disabledMcpServers": ["x"], "mcpServers": {"x": {"command": "x"}}}}}),
    ],
)
def test_a_server_that_is_switched_off_elsewhere_in_the_file_is_not_enabled(host, data, at):
    (server,) = read_servers(Document(json.dumps(data), "json", "FILE"), HOSTS[host], at())
    assert server.upstream["enabled"] is False


def test_a_broken_file_is_an_error_with_its_place(at):
    with pytest.raises(
        ConfigError, match=r"FILE:1:18: is not JSON: a string in double quotes is expected here \(fix it first"
    ):
        read_servers(Document('{"mcpServers": { ]', "json", "FILE"), HOSTS["cursor"], at())
    with pytest.raises(ConfigError, match="FILE: mcpServers: must be an object of servers"):
        read_servers(Document('{"mcpServers": []}', "json", "FILE"), HOSTS["cursor"], at())
