"""`mcp-gateway remove`, `enable` and `disable`: remove an upstream from the configuration, or switch it on or off."""

from typing import Annotated

import typer

from gateway.cli.command_context import ConfigFile
from gateway.cli.configuration_file import say_if_taken_over
from gateway.cli.exit_codes import DONE
from gateway.cli.server_completion import upstream_names
from gateway.cli.terminal import say
from gateway.hosts.config_files.configuration_file import ConfigurationFile

UpstreamName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the server in the configuration.", autocompletion=upstream_names),
]


def remove(name: UpstreamName, config: ConfigFile = None) -> int:
    """Remove an MCP server from the configuration; a running gateway ends it."""
    file = ConfigurationFile.existing(config)
    file.write(file.text.without_upstream(name))
    say(f"{file.path}: {name} removed")
    say_if_taken_over(file)
    return DONE


def enable(name: UpstreamName, config: ConfigFile = None) -> int:
    """Enable an MCP server of the configuration."""
    return _switch(name, config, enabled=True)


def disable(name: UpstreamName, config: ConfigFile = None) -> int:
    """Disable an MCP server of the configuration; its settings stay."""
    return _switch(name, config, enabled=False)


def _switch(name: str, config: ConfigFile, *, enabled: bool) -> int:
    file = ConfigurationFile.existing(config)
    before = file.text
    changed = before.with_enabled(name, enabled=enabled)
    state = "enabled" if enabled else "disabled"
    if changed is before:
        say(f"{file.path}: {name} is {state} already")
        return DONE
    file.write(changed)
    say(f"{file.path}: {name} {state}")
    say_if_taken_over(file)
    return DONE
