"""Real files of hosts that came later, read as upstreams: Hermes Agent, Goose, Kilo Code and their like."""

import pytest

from gateway.config.expansion import expand
from gateway.config.schema import Settings
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.servers import read_servers

UPSTREAMS = {
    "antigravity": {
        "gtfs-feed": {
            "url": "https://feeds.example.com/mcp",
            "headers": {"Authorization": "Bearer plain"},
            "tools": {"exclude": ["publish_feed"]},
        },
        "harbour-db": {
            "command": "/opt/harbour/bin/harbour-mcp",
            "args": ["--read-only"],
            "env": {"PGPORT": "5432"},
            "enabled": False,
        },
    },
    "kimi-code": {
        "filesystem": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
            "timeout": {"call": 45.0, "start": 20.0, "idle": 45.0},
            "tools": {"include": ["read_file"]},
        },
        "linear": {
            "url": "https://mcp.linear.app/mcp",
            "headers": {"Authorization": "Bearer ${LINEAR_TOKEN:-}"},
            "enabled": False,
        },
        "legacy-events": {"url": "https://mcp.example.com/sse", "transport": "sse"},
    },
    "hermes": {
        "github": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_TOKEN:-}"},
            "timeout": {"call": 180.0, "start": 45.0},
            "tools": {"include": ["list_issues", "create_issue"]},
        },
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/notes"]},
        "company": {
            "url": "https://mcp.internal.example.com/mcp",
            "headers": {"Authorization": "Bearer ${COMPANY_TOKEN:-}"},
            "enabled": False,
        },
    },
    "openclaw": {
        "context7": {
            "command": "uvx",
            "args": ["context7-mcp"],
            "cwd": "/srv/context7",
            "env": {"CONTEXT7_API_KEY": "${CONTEXT7_API_KEY:-}", "lower": "$${not_replaced}"},
        },
        "docs": {
            "url": "https://mcp.example.com",
            "transport": "http",
            "timeout": {"call": 20.0, "start": 5.0, "idle": 20.0},
            "tools": {"include": ["search_*"], "exclude": ["admin_*"]},
        },
    },
    "crush": {
        "filesystem": {
            "command": "node",
            "args": ["/path/to/mcp-server.js"],
            "env": {"NODE_ENV": "${MODE:-production}"},
            "tools": {"exclude": ["some-tool-name"]},
        },
        "github": {
            "url": "https://api.githubcopilot.com/mcp/",
            "transport": "http",
            "headers": {"Authorization": "Bearer ${GH_PAT:-}", "X-Secret": "$(pass show mcp)"},
        },
    },
    "copilot-cli": {
        "playwright": {
            "command": "npx",
            "args": ["@playwright/mcp@latest"],
            "env": {"TOKEN": "${PLAYWRIGHT_TOKEN:-none}"},
        },
        "context7": {
            "url": "https://mcp.context7.com/mcp",
            "transport": "http",
            "headers": {"CONTEXT7_API_KEY": "key"},
            "timeout": {"call": 60.0, "idle": 60.0},
            "tools": {"include": ["resolve-library-id", "get-library-docs"]},
        },
    },
    "kiro": {
        "web-search": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-bravesearch"],
            "env": {"BRAVE_API_KEY": "${BRAVE_API_KEY:-}"},
            "tools": {"exclude": ["local_search"]},
        },
        "api": {
            "url": "https://api.example.com/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN:-}"},
            "enabled": False,
        },
    },
    "goose": {
        "developer": None,
        "fetch": {
            "command": "uvx",
            "args": ["mcp-server-fetch"],
            "env": {"LOG": "1", "FETCH_KEY": "${FETCH_KEY:-}"},
            "timeout": {"call": 60.0, "idle": 60.0},
        },
        "remote": {
            "url": "https://example.com/mcp",
            "transport": "http",
            "headers": {"X-Team": "a"},
            "tools": {"include": ["find"]},
            "enabled": False,
        },
    },
    "roo": {
        "local": {
            "command": "node",
            "args": ["$${workspaceFolder}/server.js"],
            "env": {"KEY": "${ROO_KEY:-}"},
            "timeout": {"call": 30.0, "idle": 30.0},
        },
        "remote": {"url": "https://example.com/mcp", "transport": "http", "headers": {"X-Key": "1"}, "enabled": False},
    },
    "kilo": {
        "puppeteer": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-puppeteer"],
            "env": {"KEY": "${PUPPETEER_KEY:-}"},
        },
        "remote": {"url": "https://mcp.example.com/mcp", "enabled": False},
    },
}


def read(host, sample, at):
    return {server.name: server for server in read_servers(sample(host), HOSTS[host], at)}


@pytest.mark.parametrize(("host", "upstreams"), UPSTREAMS.items())
def test_a_hosts_real_file_becomes_upstreams_that_the_gateway_accepts(host, upstreams, sample, at):
    servers = read(host, sample, at())
    assert {name: server.upstream for name, server in servers.items()} == upstreams
    for upstream in upstreams.values():
        if upstream is not None:
            document, problems = expand({"upstreams": {"it": upstream}}, {})
            assert problems == ()
            Settings.model_validate(document)


@pytest.mark.parametrize(
    ("host", "server", "remarks", "obstacle"),
    [
        ("kimi-code", "linear", ("not set at the moment: LINEAR_TOKEN",), None),
        ("hermes", "github", ("not set at the moment: GITHUB_TOKEN",), None),
        ("hermes", "company", ("not set at the moment: COMPANY_TOKEN",), None),
        ("openclaw", "context7", ("not set at the moment: CONTEXT7_API_KEY",), None),
        ("crush", "filesystem", ("not carried over: timeout",), None),
        (
            "crush",
            "github",
            (
                "not set at the moment: GH_PAT",
                "nothing stands for $(pass show mcp) behind the gateway: write the value out",
            ),
            None,
        ),
        ("kiro", "web-search", ("not set at the moment: BRAVE_API_KEY",), None),
        ("kiro", "api", ("not set at the moment: TOKEN",), None),
        ("goose", "developer", (), "is a part of its host, not a server"),
        ("goose", "fetch", ("not set at the moment: FETCH_KEY",), None),
        (
            "roo",
            "local",
            (
                "not set at the moment: ROO_KEY",
                "nothing stands for ${workspaceFolder} behind the gateway: write the value out",
            ),
            None,
        ),
        ("kilo", "puppeteer", ("not set at the moment: PUPPETEER_KEY",), None),
    ],
)
def test_what_does_not_come_along_is_said(host, server, remarks, obstacle, sample, at):
    one = read(host, sample, at())[server]
    assert (one.remarks, one.obstacle) == (remarks, obstacle)


def test_a_folder_that_only_the_host_knows_is_that_of_the_project(sample, at):
    (server, _) = read_servers(sample("roo"), HOSTS["roo"], at(), project="/work")
    assert server.upstream["args"] == ["/work/server.js"]
