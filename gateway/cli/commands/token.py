"""`mcp-gateway token`: the tokens with which hosts may use the gateway over HTTP, in the configuration."""

import re
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.configuration_file import say_who_refuses, warn_if_unusable, warn_of_access
from gateway.cli.exit_codes import DONE, refuse
from gateway.cli.reach_words import reach_words
from gateway.cli.running_gateways import with_file
from gateway.cli.terminal import help_without_command, remark, say, say_json, say_table
from gateway.config.load_settings import load_settings
from gateway.config.moments import moment_in, seconds_of_moment
from gateway.config.problems import config_error
from gateway.config.schema import Settings
from gateway.config.setting_types import PRINCIPAL
from gateway.config.token_hashes import hash_of
from gateway.config.validation import validate
from gateway.core.model.json_values import is_list
from gateway.core.model.quantities import seconds_of
from gateway.errors import ConfigError, GatewayError
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.serving.access.tokens import new_token
from gateway.serving.control.client import ask

app = typer.Typer(name="token", help="Add, list or remove tokens for HTTP.", invoke_without_command=True)

TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token, such as that of its owner.")]


_IN_URL = """\
warning: whoever sees this address has the token. Addresses are kept in histories, and in the logs of proxies and of the
services that call them. Use it only for a host that can send no header and do no OAuth, over https://, with --upstream
and --expires; `mcp-gateway token rm NAME` withdraws it."""

_HOW = """\
Hosts send it as the header `Authorization: Bearer TOKEN`. Claude Code, for example:
  claude mcp add --transport http gateway {base}/mcp --header "Authorization: Bearer {token}"
To see whose it is: curl -H "Authorization: Bearer {token}" {base}/
To see what it reaches: mcp-gateway tools --token {name}"""


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
        typer.Option(
            "--tool", metavar="GLOB", help="Tool that exists for it, as server__tool. Repeatable. Default: all."
        ),
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
    url: Annotated[
        bool, typer.Option("--url", help="Let it be in the address too, for a host that can send no header.")
    ] = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Make a token, and print it. The configuration has only its hash, so it is not shown again.

    A running gateway accepts it at once. Without --upstream and --tool it reaches everything.

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
        "url": url or None,
    }
    table = {"hash": hash_of(token), **{key: value for key, value in given.items() if value is not None}}
    file = ConfigurationFile.existing(config)
    changed = file.text.with_token(name, table)
    _, problems = validate(Settings, {"access": {"tokens": {name: table}}})
    if problems:
        raise config_error("this token", problems)
    file.write(changed)
    base = _base(file.path)
    address = f"{base}/t/{token}/mcp" if url else None
    if as_json:
        say_json({"name": name, "token": token, **({"url": address} if address is not None else {})})
        return DONE
    say(address or token)
    remark(f"{file.path}: token {name} added; it is not shown again.")
    remark(f"It reaches {reach_words(upstream, tool)}.")
    remark(_IN_URL if url else _HOW.format(base=base, name=name, token=token if sys.stdout.isatty() else "TOKEN"))
    if warn_if_unusable(file):
        warn_of_access(file.path, f"tokens.{name}")
    return DONE


@app.command("ls")
@app.command("list", hidden=True)
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
    return say_who_refuses(file, f"the token {name}")


def _moment(text: str) -> date:
    """Return the moment that `--expires` means."""
    moment = moment_in(text)
    if isinstance(moment, datetime) and moment.tzinfo is None:
        return moment.astimezone()
    if moment is not None:
        return moment
    try:
        seconds = float(seconds_of(text))
    except ValueError:
        refuse(f"{text!r} is neither a time from now, such as 90d or 12h, nor a date such as 2027-01-31")
    return datetime.fromtimestamp(int(time.time() + seconds), UTC)


def _base(file: Path) -> str:
    """Return the address of the gateway, as far as the configuration tells: other machines use another than 0.0.0.0."""
    try:
        settings = load_settings(file).settings
    except ConfigError:  # of which the user is warned
        settings = Settings()
    http, gateway = settings.http, settings.gateway
    bind = socket.gethostname() if http.bind in ("0.0.0.0", "::") else http.bind  # noqa: S104
    host = f"[{bind}]" if ":" in bind else bind
    scheme = "http" if http.tls_certificate is None else "https"
    base = gateway.public_url or f"{scheme}://{host}:{_port(file, http.port)}{gateway.root_path}"
    return base.rstrip("/")


def _port(file: Path, configured: int) -> int:
    """Return the port on which a gateway with this file listens, which `serve --port` may have chosen."""
    ports: set[int] = set()
    for record in with_file(file):
        with suppress(GatewayError):  # it does not answer, or has ended meanwhile
            places = [urlsplit(str(place)) for place in ask(record, "status")["transports"]]
            ports |= {place.port for place in places if place.path.endswith("/mcp") and place.port is not None}
    return ports.pop() if len(ports) == 1 else configured


def _rows(tokens: Mapping[str, Mapping[str, Any]]) -> Sequence[Sequence[str]]:
    def listed(value: Any) -> str:
        return ", ".join(map(str, value)) if is_list(value) else "all"

    return [
        (
            f"{name} (url)" if token.get("url") is True else name,
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
    return f"{value.isoformat()}{' (over)' if seconds_of_moment(value) <= time.time() else ''}"


def _shown(token: Mapping[str, Any]) -> dict[str, Any]:
    public = {key: value for key, value in token.items() if key not in ("hash", "token")}
    return {key: value.isoformat() if isinstance(value, date) else value for key, value in public.items()}
