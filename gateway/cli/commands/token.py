"""`mcp-gateway token`: the tokens with which hosts may use the gateway over HTTP, in the configuration."""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.configuration_file import ConfigurationFile
from gateway.cli.exit_codes import DONE, UNUSABLE, complain, refuse
from gateway.cli.terminal import help_without_command, remark, say, say_json, say_table
from gateway.config.problems import config_error
from gateway.config.schema import PRINCIPAL, Settings
from gateway.config.validation import validate
from gateway.core.model.json_values import is_list
from gateway.core.model.quantities import seconds_of
from gateway.serving.access.tokens import hash_of, new_token

app = typer.Typer(name="token", help="Add, list or remove tokens for HTTP.", invoke_without_command=True)

TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token, such as that of its owner.")]


@app.callback()
def common(context: typer.Context) -> None:
    """Tokens with which hosts may use the gateway over HTTP: add, list, remove them."""
    help_without_command(context)


@app.command("add")
def add(
    name: TokenName,
    upstream: Annotated[
        list[str] | None,
        typer.Option("--upstream", metavar="GLOB", help="Server that exists for it. Repeatable. Default: all."),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="GLOB", help="Tool that exists for it, as server__tool. Repeatable."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="Profile of the hosts that use it.")
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option("--principal", metavar="NAME", help="Owner of content and sessions. Default: the token's name."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="WHEN", help="A time from now, as 90d, or a date, as 2027-01-31.")
    ] = None,
    calls_per_minute: Annotated[
        int | None, typer.Option("--calls-per-minute", metavar="N", min=1, help="Limit of tool calls.")
    ] = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Make a token, and print it. The configuration has only its hash, so it is not shown again.

    A running gateway accepts it at once.

    Example: mcp-gateway token add alice --upstream github --upstream 'docs*' --expires 90d
    """
    if not re.fullmatch(PRINCIPAL, name):
        refuse(f"{name!r} cannot be the name of a token: letters, digits and . _ @ + - only")
    token = new_token()
    given: dict[str, Any] = {
        "principal": principal,
        "upstreams": upstream,
        "tools": tool,
        "profile": profile,
        "expires": None if expires is None else _moment(expires),
        "calls_per_minute": calls_per_minute,
    }
    table = {"hash": hash_of(token), **{key: value for key, value in given.items() if value is not None}}
    file = ConfigurationFile.existing(config)
    changed = file.text.with_token(name, table)
    _, problems = validate(Settings, {"access": {"tokens": {name: table}}})
    if problems:
        raise config_error("this token", problems)
    file.write(changed)
    if as_json:
        say_json({"name": name, "token": token})
        return DONE
    say(token)
    remark(f"{file.path}: token {name} added; it is not shown again. Hosts send it as `Authorization: Bearer TOKEN`")
    file.warn_if_unusable()
    return DONE


@app.command("ls")
def ls(config: ConfigFile = None, as_json: AsJson = False) -> int:
    """List the tokens of the configuration, without the tokens themselves."""
    tokens = ConfigurationFile.existing(config).text.tokens()
    if as_json:
        say_json([{"name": name, **_shown(token)} for name, token in tokens.items()])
    elif not tokens:
        remark("there are no tokens: `mcp-gateway token add NAME` makes one")
    else:
        say_table(("token", "principal", "servers", "tools", "profile", "expires", "calls a minute"), _rows(tokens))
    return DONE


@app.command("rm")
def rm(name: TokenName, config: ConfigFile = None) -> int:
    """Remove a token; a running gateway refuses it from then on.

    Exit code 2: the configuration cannot be used as it is, so a running gateway takes over nothing else of it.
    """
    file = ConfigurationFile.existing(config)
    file.write(file.text.without_token(name))
    say(f"{file.path}: token {name} removed")
    if not file.warn_if_unusable():
        remedy = "mend the configuration; if it cannot even be read, end the gateway: `mcp-gateway stop`"
        complain(f"a running gateway refuses the token {name}, but takes over nothing else", remedy=remedy)
        return UNUSABLE
    file.say_who_takes_it_over()
    return DONE


def _moment(text: str) -> datetime | date:
    """Return the moment that `--expires` means."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.astimezone()
    except ValueError:
        pass
    try:
        seconds = float(seconds_of(text))
    except ValueError:
        refuse(f"{text!r} is neither a time from now, such as 90d or 12h, nor a date such as 2027-01-31")
    return datetime.fromtimestamp(int(time.time() + seconds), UTC)


def _rows(tokens: Mapping[str, Mapping[str, Any]]) -> Sequence[Sequence[str]]:
    def listed(value: Any) -> str:
        return ", ".join(map(str, value)) if is_list(value) else "all"

    return [
        (
            name,
            str(token.get("principal", name)),
            listed(token.get("upstreams")),
            listed(token.get("tools")),
            str(token.get("profile", "-")),
            _expiry(token.get("expires")),
            str(token.get("calls_per_minute", "-")),
        )
        for name, token in tokens.items()
    ]


def _expiry(value: Any) -> str:
    if not isinstance(value, date):
        return "never"
    aware = isinstance(value, datetime) and value.tzinfo is not None
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
    is_over = (moment if aware or not isinstance(value, datetime) else moment.astimezone()) <= datetime.now(UTC)
    return f"{value.isoformat()}{' (over)' if is_over else ''}"


def _shown(token: Mapping[str, Any]) -> dict[str, Any]:
    public = {key: value for key, value in token.items() if key not in ("hash", "token")}
    return {key: value.isoformat() if isinstance(value, date) else value for key, value in public.items()}
