"""`mcp-gateway login` and `logout`: log in to an upstream in the browser, and out again."""

import sys
import webbrowser
from collections.abc import Iterable
from contextlib import suppress
from html import escape
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

import anyio
import typer

from gateway.cli.command_context import ConfigFile, loaded_for, run_until_signal
from gateway.cli.exit_codes import DONE, FAILED, refuse
from gateway.cli.known_upstream import check_upstream
from gateway.cli.server_completion import upstream_names
from gateway.cli.terminal import remark, say
from gateway.config.logins import may_take_logins
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.errors import GatewayError
from gateway.runtime import open_logins
from gateway.serving.control.client import ask
from gateway.serving.control.protocol import Command
from gateway.serving.control.records import GatewayRecord, running
from gateway.serving.logins.loopback import loopback_pages
from gateway.system.files import write_file
from gateway.upstream.authorization.login_desk import LIFETIME, LoginDesk, Offer

UpstreamName = Annotated[
    str,
    typer.Argument(metavar="UPSTREAM", help="Name of the server in the configuration.", autocompletion=upstream_names),
]
Principal = Annotated[
    str | None,
    typer.Option("--principal", metavar="NAME", help="Whose login it is. Default: that of whoever runs the gateway."),
]

_TOLD_SECONDS = 30.0

_FORWARD = Template("""\
<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=$url">
<title>mcp-gateway</title>
<p><a href="$url">Log in</a></p>
""")


def login(
    upstream: UpstreamName,
    config: ConfigFile = None,
    principal: Principal = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address to open.")] = False,
) -> int:
    """Log in to a server (OAuth) in the browser; running gateways use the login at once.

    The tokens are kept for this user, sealed. On a machine without a browser, open the printed address elsewhere, and
    paste the address of the page at which that browser ends up.
    """
    loaded = loaded_for(config, None)
    _check(loaded.settings, upstream)
    records = _gateways(loaded.path)
    whose = principal or _operator(records)
    ended = run_until_signal(lambda: _log_in(loaded.settings, upstream, whose, browser=not no_browser))
    if ended is not True:
        if ended is False:
            remark("nobody has logged in in time")
        return FAILED if ended is False else int(ended)
    say(f"logged in to {upstream}" + (f" as {whose}" if principal else ""))
    _tell(records, "login", upstream, whose)
    return DONE


def logout(upstream: UpstreamName, config: ConfigFile = None, principal: Principal = None) -> int:
    """Log out of a server: its tokens are revoked, as far as that is possible, and forgotten."""
    loaded = loaded_for(config, None)
    _check(loaded.settings, upstream)
    records = _gateways(loaded.path)
    whose = principal or _operator(records)
    logins, _ = open_logins(loaded.settings, loaded.settings.upstreams.get)

    async def log_out() -> bool:
        was_there = whose in await logins.principals(upstream)
        # Those that run first: they may have tokens that are newer than those that were kept.
        await anyio.to_thread.run_sync(_tell, records, "logout", upstream, whose)
        await logins.forget(upstream, whose)
        return was_there

    say(f"logged out of {upstream}" if anyio.run(log_out) else f"there was no login to {upstream} of {whose}")
    return DONE


def _check(settings: Settings, upstream: str) -> None:
    check_upstream(upstream, settings.upstreams)
    if not may_take_logins(settings.upstreams[upstream]):
        refuse(f"{upstream} takes no login: it is a program, or the configuration has its credentials")


def _gateways(config: Path | None) -> list[GatewayRecord]:
    """The running gateways with this configuration."""
    wanted = None if config is None else str(config.absolute())
    return [record for record in running() if record.config == wanted]


def _operator(records: Iterable[GatewayRecord]) -> str:
    """The principal that runs the gateway: what hosts on stdio, and hosts over HTTP without named tokens, are."""
    for record in records:
        with suppress(GatewayError):
            return str(ask(record, "status").get("principal") or Caller().principal)
    return Caller().principal


def _tell(records: Iterable[GatewayRecord], command: Command, upstream: str, principal: str) -> None:
    for record in records:
        try:
            ask(record, command, _TOLD_SECONDS, upstream=upstream, principal=principal)
        except GatewayError as error:
            remark(f"the gateway {record.pid} does not know of it yet: {error}")


async def _log_in(settings: Settings, upstream: str, principal: str, *, browser: bool) -> bool:
    """Log in, and return whether somebody did in time."""
    _, desk = open_logins(settings, settings.upstreams.get)
    auth = settings.upstreams[upstream].auth
    async with loopback_pages(desk, lambda _: None if auth is None else auth.callback_port):
        offer = await desk.offer(upstream, principal)
        assert offer is not None
        with TemporaryDirectory(prefix="mcp-gateway-login-", ignore_cleanup_errors=True) as folder:
            if browser and await anyio.to_thread.run_sync(_opened, offer.url, Path(folder)):
                remark("log in in the browser; if it shows no page, open this address:")
                say(offer.url)
                return await offer.wait(LIFETIME)
        return await _log_in_elsewhere(desk, offer)


def _opened(url: str, folder: Path) -> bool:
    """Open a page in the browser, and return whether there is one.

    The link is in a file that only this user can read. A browser's arguments can be read by every user of the machine,
    and whoever has the link could log in first, with another account.
    """
    page = folder / "login.html"
    write_file(page, _FORWARD.substitute(url=escape(url)).encode())
    return webbrowser.open(page.as_uri())


async def _log_in_elsewhere(desk: LoginDesk, offer: Offer) -> bool:
    """Log in with a browser that somebody opens, maybe on another machine; return whether somebody did in time."""
    # Without the secret of a browser: whoever reads this terminal is who asked.
    url = await desk.begin(offer.ticket, "")
    remark("open this address:")
    say(url)
    async with anyio.create_task_group() as tasks:
        if sys.stdin.isatty():
            remark("or open it on another machine, and paste the address of the page at which you end up:")
            tasks.start_soon(_pasted, desk, offer)
        await offer.wait(LIFETIME)
        tasks.cancel_scope.cancel()
    return offer.is_done


async def _pasted(desk: LoginDesk, offer: Offer) -> None:
    """Complete the login with an address that is pasted into the terminal."""
    while not offer.is_done:
        try:
            await anyio.wait_readable(sys.stdin)
        except (OSError, NotImplementedError):  # not everywhere, and not for everything that stdin may be
            return
        line = sys.stdin.readline()
        if not line:
            return
        if "?" in line:
            try:
                await desk.complete(dict(parse_qsl(urlsplit(line.strip()).query)), "")
            except GatewayError as error:
                remark(f"not logged in: {error}")
