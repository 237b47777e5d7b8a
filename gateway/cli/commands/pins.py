"""`mcp-gateway pins`: tools as they were when their servers were first used, and what has changed since."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson, ConfigFile, settings_for
from gateway.cli.exit_codes import DONE, FAILED
from gateway.cli.known_upstream import check_upstream
from gateway.cli.server_completion import upstream_names
from gateway.cli.terminal import help_without_command, remark, say, say_json, say_table
from gateway.config.find_config import state_folder
from gateway.config.policy_settings import PinMode
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import counted, plain
from gateway.errors import ConfigError, GatewayError
from gateway.serving.control.client import ask
from gateway.serving.control.records import running
from gateway.upstream.pin_files import Change, PinnedTools, PinsDamaged, PinsNewer, approve_pins, pins_path, read_pins

app = typer.Typer(name="pins", help="See and approve changed tools.", invoke_without_command=True)

_NAME = 100


@app.callback()
def common(context: typer.Context) -> None:
    """Tools as they were when their servers were first used, and what has changed since: docs/policy.md."""
    help_without_command(context)


@app.command("ls")
@app.command("list", hidden=True)
def ls(config: ConfigFile = None, as_json: AsJson = False) -> int:
    """List the servers, and how many of their tools have changed."""
    settings = settings_for(config, None)
    found = {name: _pins_of(name, settings) for name in settings.upstreams}
    if as_json:
        say_json([_row_json(name, settings, pins) for name, pins in found.items()])
        return DONE
    rows = [_row(name, settings, pins) for name, pins in found.items()]
    say_table(("server", "mode", "pinned", "tools", "changed", "worded differently"), rows)
    return DONE


@app.command("diff")
def diff(
    server: Annotated[
        str | None,
        typer.Argument(metavar="[SERVER]", help="Name of the server. Default: all.", autocompletion=upstream_names),
    ] = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Show in words what has changed since a server was pinned.

    Exit code 1: something has.
    """
    settings = settings_for(config, None)
    if server is not None:
        check_upstream(server, settings.upstreams)
    names = list(settings.upstreams) if server is None else [server]
    changes: list[tuple[str, Change]] = []
    for name in names:
        pins = _pins_of(name, settings)
        if isinstance(pins, PinsDamaged):
            remedy = pins.remedy or f"`mcp-gateway pins approve {name}` pins its tools as they are"
            raise GatewayError(str(pins), remedy=remedy)
        changes += [(name, change) for change in (pins.changes() if pins is not None else ())]
    if as_json:
        say_json([{"server": name, **change._asdict()} for name, change in changes])
    elif not changes:
        remark("nothing has changed, as far as a gateway has seen")
    for name, change in () if as_json else changes:
        _show(name, change)
    return FAILED if changes else DONE


@app.command("approve")
def approve(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="Name of the server.", autocompletion=upstream_names)],
    tools: Annotated[list[str] | None, typer.Argument(metavar="[TOOL]...", help="Its tools. Default: all.")] = None,
    config: ConfigFile = None,
) -> int:
    """Pin the tools of a server as they are now. Running gateways offer them at once.

    What is approved is what `pins diff` shows. A file of pins that is damaged is removed, so that the server is pinned
    when it is used next.
    """
    settings = settings_for(config, None)
    check_upstream(server, settings.upstreams)
    path = _path(server, settings)
    pins = _pins_of(server, settings)
    if isinstance(pins, PinsNewer):
        raise GatewayError(str(pins), remedy=pins.remedy)
    if isinstance(pins, PinsDamaged):
        path.unlink(missing_ok=True)
        say(f"the damaged pins of {server} are removed; it is pinned when it is used next")
        _tell_gateways(server)
        return DONE
    chosen = frozenset(tools) if tools else None
    _check_names(server, chosen or frozenset(), pins)
    changes = [] if pins is None else [change for change in pins.changes() if chosen is None or change.tool in chosen]
    if pins is None or not changes:
        remark(f"nothing of {server} has changed, as far as a gateway has seen")
        return DONE

    approve_pins(path, server, pins.changes(), chosen)
    for change in changes:
        _show(server, change)
    say(f"approved: {counted(len(changes), 'change')} of {server}")
    _tell_gateways(server)
    return DONE


def _check_names(server: str, chosen: frozenset[str], pins: PinnedTools | None) -> None:
    """Refuse names that are neither pinned nor new: a misspelled tool must not look approved."""
    if pins is None:
        return
    changed = [change.tool for change in pins.changes() if change.tool is not None]
    if unknown := sorted(chosen - set(changed) - set(pins.tools)):
        named = ", ".join(plain(tool, _NAME) for tool in changed) or "none"
        words = f"{server} has no tool {', '.join(repr(plain(tool, _NAME)) for tool in unknown)}"
        raise GatewayError(words, remedy=f"changed are: {named}")


def _path(name: str, settings: Settings) -> Path:
    folder = state_folder(os.environ)
    if folder is None:
        raise ConfigError("no pins are kept, because $MCP_GATEWAY_STATE is empty")
    return pins_path(folder / "pins", name, settings.upstreams[name])


def _pins_of(name: str, settings: Settings) -> PinnedTools | PinsDamaged | None:
    try:
        return read_pins(_path(name, settings))
    except PinsDamaged as damaged:
        return damaged


def _mode(settings: Settings, upstream: UpstreamSettings) -> PinMode:
    return upstream.pins or settings.pins.mode


def _row(name: str, settings: Settings, pins: PinnedTools | PinsDamaged | None) -> tuple[str, ...]:
    mode = _mode(settings, settings.upstreams[name])
    if not isinstance(pins, PinnedTools):
        return (name, mode, "damaged" if pins is not None else "not yet", "-", "-", "-")
    changed = pins.changes()
    worded = sum(change.is_wording for change in changed)
    return (name, mode, pins.pinned, str(len(pins.tools)), str(len(changed) - worded), str(worded))


def _row_json(name: str, settings: Settings, pins: PinnedTools | PinsDamaged | None) -> dict[str, Any]:
    is_read = isinstance(pins, PinnedTools)
    return {
        "server": name,
        "mode": _mode(settings, settings.upstreams[name]),
        "problem": str(pins) if isinstance(pins, PinsDamaged) else None,
        "pinned": pins.pinned if is_read else None,
        "tools": sorted(pins.tools) if is_read else [],
        "changes": [change._asdict() for change in pins.changes()] if is_read else [],
    }


def _show(name: str, change: Change) -> None:
    about = name if change.tool is None else f"{name}: {plain(change.tool, _NAME)}"
    say(f"{about}: {'; '.join(change.words)}")


def _tell_gateways(server: str) -> None:
    """Have running gateways read the pins again. One that does not answer reads them when its lists change next."""
    for record in running():
        with suppress(GatewayError):
            ask(record, "pins", upstream=server)
