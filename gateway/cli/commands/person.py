"""`mcp-gateway person`: the people who may log in to approve hosts, in the configuration."""

import getpass
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.configuration_file import say_if_taken_over, say_who_refuses, warn_of_access
from gateway.cli.exit_codes import DONE, refuse
from gateway.cli.reach_words import reach_words
from gateway.cli.terminal import help_without_command, remark, say, say_json, say_table
from gateway.config.load_settings import load_settings
from gateway.config.problems import config_error
from gateway.config.schema import Settings
from gateway.config.setting_types import PRINCIPAL
from gateway.config.validation import validate
from gateway.core.model.json_values import is_list
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.serving.authorization.passphrases import SHORTEST, hash_passphrase
from gateway.serving.authorization.people import may_log_in

app = typer.Typer(name="person", help="Add, list or remove people.", invoke_without_command=True)

PersonName = Annotated[str, typer.Argument(metavar="NAME", help="Name with which the person logs in.")]


@app.callback()
def common(context: typer.Context) -> None:
    """People who may log in to approve hosts, such as claude.ai: add, list, remove them."""
    help_without_command(context)


@app.command("add")
def add(
    name: PersonName,
    upstream: Annotated[
        list[str] | None,
        typer.Option("--upstream", metavar="GLOB", help="Server that exists for them. Repeatable. Default: all."),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            "--tool", metavar="GLOB", help="Tool that exists for them, as server__tool. Repeatable. Default: all."
        ),
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Profile of their hosts.")] = None,
    calls_per_minute: Annotated[
        int | None, typer.Option("--calls-per-minute", metavar="N", min=1, help="Limit of tool calls.")
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="Let them see the whole gateway: metrics, console.")] = False,
    config: ConfigFile = None,
) -> int:
    """Add a person. The passphrase is typed in, or read from stdin; the configuration has only its hash.

    A running gateway with an authorization server accepts it at once.
    Without --upstream and --tool they reach everything.

    Example: mcp-gateway person add alice --upstream github --upstream 'docs*'
    """
    if not re.fullmatch(PRINCIPAL, name):
        refuse(f"{name!r} cannot be the name of a person: letters, digits and . _ @ + - only")
    file = ConfigurationFile.existing(config)
    if name in file.text.people():
        file.text.with_person(name, {})  # refuses, before anything is typed in
    given: dict[str, Any] = {
        "upstreams": upstream,
        "tools": tool,
        "profile": profile,
        "calls_per_minute": calls_per_minute,
        "admin": admin or None,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    table = {"hash": hash_passphrase(_passphrase(name)), **chosen}
    _, problems = validate(Settings, {"access": {"people": {name: table}}})
    if problems:
        raise config_error("this person", problems)
    file.write(file.text.with_person(name, table))
    say(f"{file.path}: person {name} added")
    remark(f"They reach {reach_words(upstream, tool)}.")
    if not say_if_taken_over(file):
        return DONE
    warn_of_access(file.path, f"people.{name}")
    if load_settings(file.path).settings.access.authorization_server is None:
        remark("to let people log in, add the table [access.authorization_server]: docs/access.md")
    return DONE


@app.command("ls")
@app.command("list", hidden=True)
def ls(config: ConfigFile = None, as_json: AsJson = False) -> int:
    """List the people of the configuration."""
    people = ConfigurationFile.existing(config).text.people()
    if as_json:
        shown = ({key: value for key, value in one.items() if key != "hash"} for one in people.values())
        say_json([{"name": name, **one} for name, one in zip(people, shown, strict=True)])
    elif not people:
        remark("there are no people: `mcp-gateway person add NAME` adds one")
    else:
        say_table(("person", "servers", "tools", "profile", "calls a minute", "admin"), _rows(people))
    return DONE


@app.command("rm")
def rm(name: PersonName, config: ConfigFile = None) -> int:
    """Remove a person; a running gateway refuses their hosts from then on.

    That is, unless they may log in otherwise. Exit code 2: the configuration cannot be used as it is, so a running
    gateway takes over nothing else of it.
    """
    file = ConfigurationFile.existing(config)
    file.write(file.text.without_person(name))
    say(f"{file.path}: person {name} removed")
    ended = say_who_refuses(file, name)
    if ended == DONE:
        _warn_if_still_let_in(name, load_settings(file.path).settings)
    return ended


def _warn_if_still_let_in(name: str, settings: Settings) -> None:
    server = settings.access.authorization_server
    if server is not None and server.oidc is not None and may_log_in(name, server.oidc):
        remark(
            f"{name} may still log in with {server.oidc.name}, and then reaches what "
            f"[access.authorization_server.oidc] says: to keep them out, change `people` there, and restart the gateway"
        )


def _passphrase(name: str) -> str:
    """Return a passphrase that is typed in twice, or read from stdin."""
    if sys.stdin.isatty():
        given = getpass.getpass(f"passphrase of {name} (not shown): ")
        if given != getpass.getpass("the same again: "):
            refuse("the two differ")
    else:
        given = sys.stdin.readline().rstrip("\r\n")
    if len(given) < SHORTEST:
        refuse(f"a passphrase has at least {SHORTEST} characters: several words that are easy to remember")
    return given


def _rows(people: Mapping[str, Mapping[str, Any]]) -> Sequence[Sequence[str]]:
    def listed(value: Any) -> str:
        return ", ".join(map(str, value)) if is_list(value) else "all"

    return [
        (
            name,
            listed(one.get("upstreams")),
            listed(one.get("tools")),
            str(one.get("profile", "-")),
            str(one.get("calls_per_minute", "-")),
            "yes" if one.get("admin") is True else "no",
        )
        for name, one in people.items()
    ]
