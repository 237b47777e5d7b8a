"""`mcp-gateway console`: open the console of a running gateway in the browser."""

import sys
import webbrowser
from typing import Annotated

import typer

from gateway.cli.command_context import AsJson
from gateway.cli.exit_codes import DONE
from gateway.cli.running_gateways import Name, Pid, the_one
from gateway.cli.terminal import remark, say, say_json
from gateway.serving.control.client import ask

_SECONDS = 20.0

NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]


def console(pid: Pid = None, name: Name = None, no_browser: NoBrowser = False, as_json: AsJson = False) -> int:
    """Open the console of a running gateway: every call, and what each model sees of it.

    Its address works once, within ten minutes, in one browser on this machine. Calls are kept from now on; a gateway
    with [console] enabled keeps them from its start.
    """
    url = ask(the_one(pid, name), "console", _SECONDS)["url"]
    if as_json:
        say_json({"url": url})
        return DONE
    say(url)
    if not no_browser and sys.stdout.isatty() and not webbrowser.open(url):
        remark("no browser could be opened; open this address in one")
    return DONE
