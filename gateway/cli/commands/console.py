"""`mcp-gateway console`: see in the browser what every model sees."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.command_context import AsJson, ConfigFile, loaded_for, run_until_signal
from gateway.cli.exit_codes import DONE, TERMINATED
from gateway.cli.running_gateways import Name, Pid, only, the_one, with_file
from gateway.cli.terminal import remark, say, say_json
from gateway.config.find_config import find_file
from gateway.config.schema import Settings
from gateway.serving.control.client import ask
from gateway.serving.control.records import GatewayRecord, running

_SECONDS = 20.0

NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]


def console(
    config: ConfigFile = None,
    pid: Pid = None,
    name: Name = None,
    no_browser: NoBrowser = False,
    as_json: AsJson = False,
) -> int:
    """Open the console of a running gateway: every call, and what each model sees of it.

    Its address works once, within ten minutes, in one browser on this machine. Calls are kept from now on; a gateway
    with `enabled = true` in [console] keeps them from its start.

    If no gateway is running, or with --config none that has this file, one is started for the console, and ends with
    Ctrl-C.
    """
    record = _chosen(config, pid, name)
    if record is None:
        return _with_gateway_of_its_own(config, no_browser=no_browser)
    url = ask(record, "console", _SECONDS)["url"]
    _say_whose(record)
    if as_json:
        say_json({"url": url})
    else:
        say(url)
        _open(url, no_browser=no_browser)
    return DONE


def _chosen(config: Path | None, pid: int | None, name: str | None) -> GatewayRecord | None:
    """Return the running gateway that is meant; None if one has to be started."""
    if pid is not None or name is not None:
        return the_one(pid, name)
    found = running() if config is None else with_file(config)
    return only(found) if found else None


def _say_whose(record: GatewayRecord) -> None:
    """Say which gateway it is: on a machine with several configurations, it may not be the one that was expected."""
    remark(f"the gateway of process {record.pid}, {record.config or 'without a file'}")
    here = find_file(None, environ=os.environ)
    if here is not None and record.config is not None and here.resolve() != Path(record.config).resolve():
        remark(f"its configuration is not {here}: mcp-gateway console --config {here} starts one with that")


def _open(url: str, *, no_browser: bool) -> None:
    if not no_browser and sys.stdout.isatty() and not webbrowser.open(url):
        remark("no browser could be opened; open this address in one")


def _with_gateway_of_its_own(config: ConfigFile, *, no_browser: bool) -> int:
    from functools import partial

    from gateway.cli.commands.serve_http import fast_over_http, serve_http_with
    from gateway.cli.controlled_gateway import Start
    from gateway.telemetry import configure_logging

    def overlay(settings: Settings) -> Settings:
        http = settings.http.model_copy(update={"bind": "127.0.0.1", "port": 0})
        console = settings.console.model_copy(update={"enabled": True})
        return settings.model_copy(update={"http": http, "console": console})

    def tell(url: str) -> None:
        say(url)
        sys.stdout.flush()  # a file or a pipe would have it when the gateway has ended
        remark("this gateway was started for the console: it ends with Ctrl-C")
        _open(url, no_browser=no_browser)

    start = Start.of(loaded_for(config, None, None), None, overlay)
    configure_logging(start.settings)
    ended = run_until_signal(partial(serve_http_with, start, tell), fast_loop=fast_over_http(start.settings))
    return DONE if ended == TERMINATED else ended or DONE
