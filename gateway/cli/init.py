"""`mcp-gateway init`: a first mcp-gateway.toml."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.failing import DONE
from gateway.cli.terminal import say
from gateway.config.finding import FILE_NAME
from gateway.errors import ConfigError
from gateway.registration.files import read_bytes, replace_file
from gateway.registration.starting import first_configuration, upstreams_of


def init(
    path: Annotated[Path, typer.Argument(metavar="[PATH]", help="The file, or the folder that it goes into.")] = Path(
        FILE_NAME
    ),
    upstream: Annotated[
        list[str] | None, typer.Option("--upstream", metavar="NAME=URL", help="A server that runs. Repeatable.")
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", metavar="NAME=LINE", help="A server's command line, in quotes. Repeatable."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> int:
    """Write a first mcp-gateway.toml, with comments."""
    file = path / FILE_NAME if path.is_dir() else path
    before = read_bytes(file)
    if before is not None and not force:
        raise ConfigError("is there already", where=str(file), remedy="--force writes over it")
    upstreams = upstreams_of(upstream or (), command or ())
    if not upstreams and not yes and sys.stdin.isatty():
        upstreams = _asked()
    replace_file(file, first_configuration(upstreams).encode("utf-8"), expected=before)
    say(f"{file}: written, with {len(upstreams) or 'no'} upstream{'' if len(upstreams) == 1 else 's'}")
    if not upstreams:
        say("next: put your servers into it, or let `mcp-gateway import` take over those of your hosts")
    say("then: `mcp-gateway tools` lists what a host is offered, `mcp-gateway install <host>` registers the gateway")
    return DONE


def _asked() -> dict[str, dict[str, Any]]:
    """Ask for servers until nothing is answered."""
    say("The MCP servers behind the gateway, one by one: a command line, or a URL. Nothing more: Enter.")
    upstreams: dict[str, dict[str, Any]] = {}
    while line := typer.prompt("command line or URL", default="", show_default=False).strip():
        try:
            remote = line.startswith(("http://", "https://"))
            one = upstreams_of([line], ()) if remote else upstreams_of((), [line])
            ((suggested, table),) = one.items()
            name = typer.prompt("its name", default=suggested)
            first_configuration({**upstreams, name: table})
            upstreams[name] = table
        except ConfigError as error:
            say(f"that cannot be used: {error}")
    return upstreams
