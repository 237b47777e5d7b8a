"""The gateway's entry in each format: what a host reads to start a server of a name with a command."""

from typing import Any

from gateway.hosts.config_files.launch_command import Launch

_GOOSE_SECONDS = 300
"""Goose's own limit for a call."""
_GOOSE_REFUSES = frozenset({"PATH", "PYTHONPATH"})
"""Variables that Goose does not let an extension set (crates/goose/src/agents/extension.rs)."""
_OPENCLAW_MILLISECONDS = 60_000
"""OpenClaw's own limit for a call (openclaw/openclaw#73536); once written, tools/list has as long."""
_OPENCLAW_REFUSES = frozenset({"PYTHONPATH"})
"""Variables with which OpenClaw does not start a server (https://docs.openclaw.ai/cli/mcp#stdio-transport)."""


def plain(name: str, launch: Launch) -> dict[str, Any]:
    """The form of most hosts."""
    return {"command": launch.command, "args": list(launch.args), "env": dict(launch.env)}


def typed(name: str, launch: Launch) -> dict[str, Any]:
    """The same with the transport, for hosts that require it."""
    return {"type": "stdio", **plain(name, launch)}


def in_one_list(name: str, launch: Launch) -> dict[str, Any]:
    """The form of opencode and Kilo Code: the command and its arguments are one list."""
    return {
        "type": "local",
        "command": [launch.command, *launch.args],
        "environment": dict(launch.env),
        "enabled": True,
    }


def copilot_cli(name: str, launch: Launch) -> dict[str, Any]:
    """The form that `copilot mcp add` writes (1.0.102): without `tools`, none is offered."""
    return {"type": "local", **plain(name, launch), "tools": ["*"]}


def openclaw(name: str, launch: Launch) -> dict[str, Any]:
    """OpenClaw's form. Without `requestTimeoutMs` it gives up tools/list after 1.5 s (2026.9.6), and the server."""
    env = {key: value for key, value in launch.env.items() if key not in _OPENCLAW_REFUSES}
    entry = {"command": launch.command, "args": list(launch.args), "env": env}
    return {**entry, "requestTimeoutMs": _OPENCLAW_MILLISECONDS}


def goose(name: str, launch: Launch) -> dict[str, Any]:
    """An extension of Goose."""
    return {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "description": "The MCP servers behind mcp-gateway",
        "cmd": launch.command,
        "args": list(launch.args),
        "envs": {key: value for key, value in launch.env.items() if key not in _GOOSE_REFUSES},
        "timeout": _GOOSE_SECONDS,
    }
