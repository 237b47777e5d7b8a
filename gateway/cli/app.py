"""The commands put together, and what they share: options of all, errors, logging."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gateway import __version__
from gateway.cli import (
    calibrate,
    call,
    check,
    config,
    content,
    demo,
    doctor,
    explain,
    importing,
    init,
    install,
    logs,
    profiles,
    proxy,
    reload,
    serve,
    status,
    stop,
    tools,
)
from gateway.cli.failing import ending
from gateway.cli.started import Started
from gateway.cli.terminal import forgive_encodings, say
from gateway.config.schema import LoggingSettings, Settings
from gateway.telemetry import configure_logging

if TYPE_CHECKING:
    from gateway.downstream.opening import Opening

EPILOG = (
    "Exit codes: 0 done, 1 what was asked for failed, 2 the command line or the configuration cannot be used, "
    "3 an upstream is not available, 130 interrupted."
)

app = typer.Typer(
    name="mcp-gateway",
    help="One MCP server in front of many; every result in the shape that each host really shows its model.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("proxy")(proxy.proxy)
app.command("init")(init.init)
app.command("import")(importing.import_)
app.command("install")(install.install)
app.command("uninstall")(install.uninstall)
app.command("tools")(tools.tools)
app.command("call")(call.call)
app.command("explain")(explain.explain)
app.add_typer(profiles.app, name="profiles")
app.add_typer(config.app, name="config")
app.command("put")(content.put)
app.add_typer(content.app, name="content")
app.command("status")(status.status)
app.command("logs")(logs.logs)
app.command("reload")(reload.reload)
app.command("stop")(stop.stop)
app.command("calibrate")(calibrate.calibrate)
app.command("doctor")(doctor.doctor)
app.command("check")(check.check)
app.command("demo")(demo.demo)


def _version(asked: bool) -> None:
    if asked:
        say(f"mcp-gateway {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", help="Say the version and end.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Log everything, and show where an error comes from.")] = False,
) -> None:
    """Options of every command: here to be listed. `_version` has acted, and `run` looks for `--debug` everywhere."""


def run(arguments: Sequence[str], opening: "Opening | None" = None) -> int:
    """Run the command line; returns the exit code. `opening` is the stdio connection that was opened already."""
    before, rest = _split(arguments)
    debug = "--debug" in before
    given = [*(word for word in before if word != "--debug"), *rest]
    forgive_encodings()
    # `serve` configures it anew, as soon as it knows the configuration.
    log = configure_logging(Settings(logging=LoggingSettings(level="error")), debug=debug)
    started = Started(opening, debug)
    try:
        return ending(lambda: app(given, prog_name="mcp-gateway", standalone_mode=False, obj=started), debug=debug)
    finally:
        log.flush()


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The command's own arguments, and from `--` on those of an upstream's program."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return list(arguments[:end]), list(arguments[end:])
