"""`mcp-gateway init`: write a first mcp-gateway.toml."""

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.diagnosis.findings import list_names
from gateway.cli.exit_codes import DONE
from gateway.cli.move_secrets import ToKeyring, go_to_keyring, store_secrets
from gateway.cli.terminal import say, say_table
from gateway.config.find_config import FILE_NAME, config_candidates, find_file
from gateway.core.fact_words import counted
from gateway.errors import ConfigError
from gateway.hosts.config_files.discover import discover
from gateway.hosts.config_files.files import read_bytes, replace_file
from gateway.hosts.config_files.import_servers import ImportPlan, plan_import, with_keyring
from gateway.hosts.config_files.login_probe import ask_for_logins
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.starter_config import HEAD, first_configuration, upstreams_of
from gateway.serving.control.gateway_ports import gateway_ports


def init(
    path: Annotated[
        str | None,
        typer.Argument(metavar="[PATH]", help=f"The file, or its folder. Default: {FILE_NAME} here."),
    ] = None,
    upstream: Annotated[
        list[str] | None, typer.Option("--upstream", metavar="NAME=URL", help="A running server. Repeatable.")
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", metavar="NAME=LINE", help="Command line of a server, in quotes. Repeatable."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    keyring: ToKeyring = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> int:
    """Write a first mcp-gateway.toml, with comments."""
    file = _file(FILE_NAME if path is None else path)
    before, in_force = read_bytes(file), _in_force_elsewhere(file)
    if before is not None and not force:
        raise ConfigError("exists already", where=str(file), remedy="--force overwrites it")
    if in_force is not None and path is None:
        raise ConfigError(
            f"{in_force} is your configuration already",
            remedy="`mcp-gateway add` and `import` go on with it; `mcp-gateway init .` begins one for this folder",
        )
    upstreams = upstreams_of(upstream or (), command or ())
    asks = not upstreams and not yes and sys.stdin.isatty()
    found = _found(file, probe=asks) if not upstreams else ImportPlan((), "")
    if asks and found.new and _agreed(found):
        text, count = _with_secrets_kept(found, file, keyring), len(found.new)
    else:
        upstreams = _asked() if asks else upstreams
        text, count = first_configuration(upstreams), len(upstreams)
    replace_file(file, text.encode("utf-8"), expected=before)
    for name, table in upstreams.items():
        if "cwd" in table:
            say(f"{name}: its working folder is {table['cwd']}, where its arguments name files")
    say(f"{file.absolute()}: written, with {counted(count, 'upstream')}")
    if file.absolute() == next(config_candidates()).absolute():
        own = in_force or list(config_candidates())[-1]
        instead = f"{own} is used there, and not here" if in_force else f"or write {own} instead"
        say(f"it is found in this folder only; elsewhere, name it with --config{';' if in_force else ','} {instead}")
    _say_next(file, None if count else found)
    return DONE


def _in_force_elsewhere(file: Path) -> Path | None:
    """Return the configuration that commands use in this folder if it is there, and is not the file to write."""
    found = find_file(None, environ=os.environ)
    return found if found is not None and found.is_file() and found.absolute() != file.absolute() else None


def _file(path: str) -> Path:
    """Return the file to write: a path like a folder's, or a new one without extension, is the folder for it."""
    given = Path(path)
    is_folder = given.is_dir() or path.endswith(("/", os.sep)) or not (given.suffix or given.exists())
    return given / FILE_NAME if is_folder else given


def _found(file: Path, *, probe: bool) -> ImportPlan:
    """Return the servers of this machine's hosts as a first configuration. `probe`: ask whether they want a login."""
    servers = discover((), Machine.here(gateway_ports())).servers
    answers = ask_for_logins([one.upstream for one in servers if one.upstream], os.environ) if probe else {}
    return plan_import(servers, HEAD, str(file), logins=[url for url, wants in answers.items() if wants])


def _agreed(found: ImportPlan) -> bool:
    say("Your hosts have these MCP servers:")
    say_table(("server", "from"), [(str(row.upstream), row.server.origin) for row in found.new])
    count = len(found.new)
    return typer.confirm(f"Put {'it' if count == 1 else f'all {count}'} behind the gateway?", default=True)


def _with_secrets_kept(found: ImportPlan, file: Path, keyring: bool | None) -> str:
    """Return the text of the configuration, after plain secrets were moved into the keyring if that is wanted."""
    in_keyring, secrets = with_keyring(found, HEAD, str(file))
    moved = secrets and go_to_keyring(secrets, keyring, ask=True) and store_secrets(secrets, may_stay=keyring is None)
    return in_keyring.text if moved else found.text


def _say_next(file: Path, found: ImportPlan | None) -> None:
    """Print the next steps. `found`: the hosts' servers, if the file has no upstream."""
    if found is not None:
        here = find_file(None, environ=os.environ)
        which = "" if here is not None and here.absolute() == file.absolute() else f" --config {file}"
        names = list_names([str(row.upstream) for row in found.new])
        theirs = f"those of your hosts ({names})" if names else "those of your hosts"
        say(f"next: `mcp-gateway add{which} NAME -- COMMAND` adds a server, `mcp-gateway import{which}` {theirs}")
    first = "next" if found is None else "then"
    say(
        f"{first}: `mcp-gateway tools` lists what a host is offered, `mcp-gateway install <host>` registers the gateway"
    )


def _asked() -> dict[str, dict[str, Any]]:
    """Ask for servers until the answer is empty."""
    say("The MCP servers behind the gateway, one by one: a command line, or a URL. Press Enter to finish.")
    upstreams: dict[str, dict[str, Any]] = {}
    while line := typer.prompt("command line or URL", default="", show_default=False).strip():
        try:
            is_url = line.startswith(("http://", "https://"))
            ((suggested, table),) = upstreams_of(*(([line], ()) if is_url else ((), [line])), taken=upstreams).items()
            first_configuration({suggested: table})
        except ConfigError as error:
            say(f"that cannot be used: {error}")
            continue
        upstreams[_asked_name(suggested, table, upstreams)] = table
    return upstreams


def _asked_name(suggested: str, table: dict[str, Any], taken: Collection[str]) -> str:
    """Ask for the name of a server until it can be used."""
    while True:
        name = typer.prompt("its name", default=suggested).strip()
        try:
            if name in taken:
                raise ConfigError(f"there is an upstream {name!r} already", remedy="give this one another name")
            first_configuration({name: table})
        except ConfigError as error:
            say(f"that cannot be its name: {error}")
        else:
            return name
