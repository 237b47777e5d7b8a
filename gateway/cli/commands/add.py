"""`mcp-gateway add`: add an upstream to the configuration, and keep its comments and formatting."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, cast

import typer

from gateway.cli.add_api import api_upstream
from gateway.cli.add_from_registry import RegistryOptions, add_from_registry
from gateway.cli.check_added import check_added
from gateway.cli.command_context import CommandContext, ConfigFile
from gateway.cli.configuration_file import say_if_taken_over
from gateway.cli.exit_codes import DONE, refuse
from gateway.cli.terminal import remark, say
from gateway.config.expansion import expand
from gateway.config.find_config import config_candidates, find_file
from gateway.config.load_settings import PYTHON_VARIABLE
from gateway.config.logins import login_command, url_behind, with_time_to_log_in
from gateway.config.setting_types import is_url, url_meant
from gateway.core.registry.entry import is_registry_name
from gateway.errors import ConfigError
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.hosts.config_files.login_probe import ask_for_logins
from gateway.hosts.config_files.starter_config import check_upstream, from_words


def add(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name for the server; its tools become NAME__tool. Alone: NAME[@VERSION] of the registry.",
        ),
    ],
    server: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL|-- COMMAND", help="Its URL, or its command line after --."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", metavar="NAME=VALUE", help="Environment variable for the command. Repeatable."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="HTTP header for the URL. Repeatable."),
    ] = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", metavar="DIR", help="Working directory of the command.")] = None,
    kind: Annotated[
        Literal["http", "sse"] | None,
        typer.Option("--type", help="Transport of the URL. Default: detected."),
    ] = None,
    openapi: Annotated[
        str | None,
        typer.Option("--openapi", metavar="FILE|URL", help="OpenAPI document of an HTTP API, with its URL if needed."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the server NAME; keep its other settings.")
    ] = False,
    pin: Annotated[
        bool, typer.Option("--pin", help="Pin its tools: withhold those that change later. docs/policy.md")
    ] = False,
    via: Annotated[
        Literal["npm", "pypi", "oci", "nuget", "url"] | None,
        typer.Option("--via", help="Registry: the kind of package or address, if it has several."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Registry: a value that the server asks for. Repeatable."),
    ] = None,
    own_name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Registry: the name that the server gets here.")
    ] = None,
    keyring: Annotated[
        bool | None,
        typer.Option("--keyring/--no-keyring", help="Registry: secrets go into the keyring. Default: if there is one."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", help="Registry: start it once, and show what your hosts will see of it."),
    ] = True,
    config: ConfigFile = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask: create a missing configuration, add what was shown.")
    ] = False,
) -> int:
    """Add an MCP server to the configuration; a running gateway applies the change.

    Examples: mcp-gateway add time -- uvx mcp-server-time

    mcp-gateway add docs https://example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'

    mcp-gateway add pets --openapi petstore.yaml https://petstore.example/v1

    mcp-gateway add io.github.acme/weather@1.2.0 --set UNITS=metric
    """
    words = server or []
    of_registry = RegistryOptions(via, values or (), own_name, keyring, replace, pin, yes)
    if not words and is_registry_name(name):
        if env or header or cwd is not None or kind or openapi is not None:
            refuse("--env, --header, --cwd, --type and --openapi are not for servers of the registry: use --set")
        return _add_from_registry(name, _file(config, yes), config, of_registry, check=check)
    if any(one is not None for one in (via, values, own_name, keyring)):
        refuse("--via, --set, --as and --keyring are for servers of the registry: mcp-gateway add io.github.x/y")
    after_dashes = cast("CommandContext", context.obj).after_dashes
    if words and not is_url(words[0]) and not after_dashes:
        _refuse_command_line(words)
    if 0 < after_dashes < len(words):
        refuse(f"one name stands before --, and this is another word: {words[0]!r}")
    if openapi is not None:
        if env or cwd is not None or kind or after_dashes:
            refuse("--openapi takes a URL and --header, and no --env, --cwd, --type or command line")
        upstream = api_upstream(openapi, words, _headers(header or ()))
    else:
        upstream = _upstream(words, env or (), header or (), cwd, kind)
    upstream |= {"pins": "hold"} if pin else {}
    file = _file(config, yes)
    changed = file.text.with_way_in(name, upstream) if replace else file.text.with_upstream(name, upstream)
    check_upstream(name, upstream)
    file.write(changed)
    say(f"{file.path}: {name} {'changed' if replace else 'added'} ({_described(upstream)})")
    if cwd is None and "cwd" in upstream:
        say(f"its working folder is {upstream['cwd']}, where its arguments name files")
    _warn(name, upstream)
    if say_if_taken_over(file):
        say(f"next: `mcp-gateway tools{file.as_option}` waits for its start, and lists its tools")
    return DONE


def _add_from_registry(
    name: str, file: ConfigurationFile, config: Path | None, options: RegistryOptions, *, check: bool
) -> int:
    added = add_from_registry(name, file, config, options)
    if isinstance(added, int):
        return added
    usable = say_if_taken_over(file)
    if check and usable:
        return check_added(added, file)
    say(f"next: `mcp-gateway check {added}{file.as_option}` starts it, and shows what hosts see of it")
    return DONE


def _upstream(
    server: Sequence[str], env: Sequence[str], header: Sequence[str], cwd: Path | None, kind: str | None
) -> dict[str, Any]:
    """Return the upstream as a table of mcp-gateway.toml."""
    if not server:
        refuse("give the server's URL, or -- and its command line: mcp-gateway add NAME -- npx -y some-server")
    first, *rest = server
    if is_url(first):
        if rest:
            refuse("a URL takes no arguments: headers go into --header 'NAME: VALUE'")
        if env or cwd is not None:
            refuse("--env and --cwd are for a command; a URL takes --header")
        headers = _headers(header)
        return {"url": first, **({"transport": kind} if kind else {}), **({"headers": headers} if headers else {})}
    if header or kind:
        refuse("--header and --type are for a URL; a command takes --env")
    given = dict(_pair(one, "=", "--env NAME=VALUE") for one in env)
    upstream = from_words(server) | ({"env": given} if given else {})
    upstream |= {"cwd": str(cwd.absolute())} if cwd is not None else {}
    return with_time_to_log_in(upstream)


def _headers(header: Sequence[str]) -> dict[str, str]:
    return dict(_pair(one, ":", "--header 'NAME: VALUE'") for one in header)


def _pair(given: str, separator: str, form: str) -> tuple[str, str]:
    name, found, value = given.partition(separator)
    if not found or not name.strip():
        refuse(f"give it as {form}")
    return name.strip(), value.strip() if separator == ":" else value


def _refuse_command_line(words: Sequence[str]) -> NoReturn:
    """Refuse a command line without --, or an address without its scheme."""
    if len(words) == 1 and (url := url_meant(words[0])) is not None:
        refuse(f"did you mean {url}? A command line goes after --")
    refuse("put -- before the command line, so that its options are not taken for this command's own")


def _file(asked: Path | None, yes: bool) -> ConfigurationFile:
    """Return the configuration in force, or a new one if there is none and the user agrees."""
    found = find_file(asked, environ=os.environ)
    file = ConfigurationFile.read((found or list(config_candidates())[-1]).absolute())
    if file.exists or yes:
        return file
    if not sys.stdin.isatty():
        remedy = f"--yes writes {file.path}, --config names another file"
        raise ConfigError("there is no configuration yet", remedy=remedy)
    if not typer.confirm(f"There is no configuration yet. Write {file.path}?", default=True):
        raise typer.Abort
    return file


def _described(upstream: dict[str, Any]) -> str:
    """Name the program or the transport, but never arguments and addresses, which may contain secrets."""
    if "openapi" in upstream:
        return "an HTTP API, of which the operations that only read are offered"
    return f"stdio, {upstream['command']}" if "command" in upstream else f"a url, {upstream.get('transport', 'auto')}"


def _warn(name: str, upstream: dict[str, Any]) -> None:
    """Warn of problems with the upstream that are already apparent."""
    command = upstream.get("command")
    if command is not None and shutil.which(os.path.expanduser(_expanded(command))) is None:
        remark(f"warning: there is no program {command!r} that could be started here")
    if any(ask_for_logins([upstream], os.environ).values()):
        remark(f"{name} wants a login (OAuth): `{login_command(name)}` opens it in your browser")
    if url_behind(upstream) is not None:
        say("its first start opens the browser for the login: `mcp-gateway tools` does it while you are there")


def _expanded(command: str) -> str:
    expanded, _ = expand({"command": command}, {PYTHON_VARIABLE: sys.executable, **os.environ})
    return str(expanded["command"])
