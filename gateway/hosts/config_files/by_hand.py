"""Hosts whose configuration is edited by hand: where their files are, and what to write into them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from gateway.hosts.config_files.launch_command import Launch
from gateway.hosts.config_files.machine import Machine


@dataclass(frozen=True)
class HandEditedHost:
    """A host with a configuration in a format that the gateway does not edit: its `file`, and the text for it.

    `snippet` writes the text for a gateway of a name; `hint` says in a sentence what else may be needed.
    """

    name: str
    title: str
    page: str
    file: Callable[[Machine], PurePath]
    snippet: Callable[[str, Launch], str]
    hint: str
    after: str


_GOOSE_SECONDS = 300
"""Goose's own limit for a call."""
_GOOSE_REFUSES = frozenset({"PATH", "PYTHONPATH"})
"""Variables of the launch that Goose does not let an extension set (crates/goose/src/agents/extension.rs)."""


def _goose_file(at: Machine) -> PurePath:
    windows = at.in_roaming("Block", "goose", "config", "config.yaml")
    return windows if at.platform == "win32" else at.in_xdg_config("goose", "config.yaml")


def _goose_snippet(name: str, launch: Launch) -> str:
    """Return an extension for Goose's config.yaml. JSON values are YAML, too."""
    extension = {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "description": "The MCP servers behind mcp-gateway",
        "cmd": launch.command,
        "args": list(launch.args),
        "envs": {key: value for key, value in launch.env.items() if key not in _GOOSE_REFUSES},
        "timeout": _GOOSE_SECONDS,
    }
    lines = (f"    {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in extension.items())
    return "\n".join(["extensions:", f"  {json.dumps(name, ensure_ascii=False)}:", *lines])


_ALL = (
    HandEditedHost(
        "goose",
        "Goose",
        "https://block.github.io/goose/docs/guides/config-files",
        _goose_file,
        _goose_snippet,
        "it lets no extension set PATH: where programs of your upstreams are not found, list their folders under "
        "GOOSE_SEARCH_PATHS in the same file",
        "start a new session",
    ),
)

HAND_EDITED: Mapping[str, HandEditedHost] = {host.name: host for host in _ALL}
"""The hosts that `install` prints the text for, by name; a host's built-in profile has the same name."""
