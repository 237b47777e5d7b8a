"""`mcp-gateway secret`: keep secrets in the operating system's keyring, for `${keyring:NAME}` in the configuration."""

import getpass
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from gateway.cli.exit_codes import DONE, refuse
from gateway.cli.terminal import help_without_command, say
from gateway.config.expansion import NoValue
from gateway.config.secret_sources import keep_in_keyring, remove_from_keyring
from gateway.errors import ConfigError

app = typer.Typer(name="secret", help="Keep secrets in the keyring.", invoke_without_command=True)

EntryName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of the entry; SERVICE/NAME for that of another program."),
]


@app.callback()
def common(context: typer.Context) -> None:
    """Secrets in the operating system's keyring, which the configuration names as ${keyring:NAME}."""
    help_without_command(context)


@app.command("set")
def set_secret(name: EntryName) -> int:
    """Store a secret that is typed in or read from stdin.

    It replaces an earlier one of this name.
    """
    if not name.strip() or "}" in name:
        refuse("the name of a secret is not empty and has no }")
    given = getpass.getpass(f"{name} (not shown): ") if sys.stdin.isatty() else sys.stdin.readline()
    value = given.rstrip("\r\n")
    if not value.strip():
        refuse("there is nothing to store: type the secret, or write it to stdin")
    _told(keep_in_keyring, name, value)
    say(f"stored; write ${{keyring:{name}}} where the configuration needs it")
    return DONE


@app.command("rm")
def rm(name: EntryName) -> int:
    """Remove a secret."""
    _told(remove_from_keyring, name)
    say("removed")
    return DONE


def _told(act: Callable[..., None], *given: str) -> None:
    try:
        act(*given)
    except NoValue as missing:
        raise ConfigError(str(missing), remedy=missing.remedy) from missing
