"""The command line application: its commands, common options, error handling and logging."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gateway._version import __version__
from gateway.cli.command_context import CommandContext
from gateway.cli.commands import (
    add,
    calibrate,
    call,
    check,
    config,
    content,
    demo,
    doctor,
    explain,
    import_servers,
    init,
    install,
    logs,
    profiles,
    proxy,
    read,
    reload,
    secret,
    serve,
    status,
    stop,
    token,
    tools,
    upstreams,
)
from gateway.cli.exit_codes import ending
from gateway.cli.terminal import forgive_encodings, help_without_command, say
from gateway.config.schema import LoggingSettings, Settings
from gateway.telemetry import configure_logging

if TYPE_CHECKING:
    from gateway.serving.mcp.early_stdio import EarlyStdio

EPILOG = (
    "Exit codes: 0 success, 1 failure, 2 unusable command line or configuration, 3 an upstream is not available, "
    "130 interrupted."
)

app = typer.Typer(
    name="mcp-gateway",
    help="One MCP server in front of many, with every result in a shape that the host really shows its model.",
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("serve", short_help="Serve one host over stdio, or many over HTTP.")(serve.serve)
app.command("proxy", short_help="Repair tool results on their way to a model API.")(proxy.proxy)
app.command("init", short_help="Write a first mcp-gateway.toml.")(init.init)
app.command("import", short_help="Import the MCP servers of your hosts.")(import_servers.import_)
app.command("add", short_help="Add an MCP server to the configuration.")(add.add)
app.command("remove", short_help="Remove an MCP server from the configuration.")(upstreams.remove)
app.command("enable", short_help="Enable an MCP server.")(upstreams.enable)
app.command("disable", short_help="Disable an MCP server; its settings stay.")(upstreams.disable)
app.command("install", short_help="Register the gateway in a host.")(install.install)
app.command("uninstall", short_help="Remove the gateway from a host.")(install.uninstall)
app.command("tools", short_help="List the tools that a host is offered.")(tools.tools)
app.command("call", short_help="Call a tool, and show what a host is sent.")(call.call)
app.command("read", short_help="Read a resource, such as the page of a tool.")(read.read)
app.command("explain", short_help="Show step by step how a result is shaped for a host.")(explain.explain)
app.add_typer(profiles.app, name="profiles", short_help="List the host profiles, or show one.")
app.add_typer(config.app, name="config", short_help="Check the configuration.")
app.command("put", short_help="Store a file, and print its handle and its link.")(content.put)
app.add_typer(content.app, name="content", short_help="List, save or remove stored content.")
app.add_typer(token.app, name="token", short_help="Add, list or remove tokens for HTTP.")
app.add_typer(secret.app, name="secret", short_help="Keep secrets in the keyring.")
app.command("status", short_help="Show the running gateways.")(status.status)
app.command("logs", short_help="Show the log of a gateway.")(logs.logs)
app.command("reload", short_help="Make a running gateway reload its configuration.")(reload.reload)
app.command("stop", short_help="Stop a running gateway.")(stop.stop)
app.command("calibrate", short_help="Measure what a host shows its model.")(calibrate.calibrate)
app.command("doctor", short_help="Find out what is wrong, and how to fix it.")(doctor.doctor)
app.command("check", short_help="Test a server of your own against every host.")(check.check)
app.command("demo", short_help="See what each host's model gets, with bundled servers.")(demo.demo)


def _version(asked: bool) -> None:
    if asked:
        say(f"mcp-gateway {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Log everything, and show the traceback of an error.")] = False,
) -> None:
    """Declare the common options for --help. `_version` has already acted, and `run` finds `--debug` anywhere."""
    help_without_command(context)


def run(arguments: Sequence[str], opening: "EarlyStdio | None" = None) -> int:
    """Run the command line and return the exit code. `opening` is the stdio connection if it is already open."""
    before, rest = _split(arguments)
    debug = "--debug" in before
    given = [*(word for word in before if word != "--debug"), *rest]
    forgive_encodings()
    # `serve` configures logging again as soon as it knows the configuration.
    log = configure_logging(Settings(logging=LoggingSettings(level="error")), debug=debug)
    invocation = CommandContext(opening, debug, after_dashes=bool(rest))
    try:
        return ending(lambda: app(given, prog_name="mcp-gateway", standalone_mode=False, obj=invocation), debug=debug)
    finally:
        log.flush()


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split off the arguments from `--` on, which belong to an upstream's program."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return list(arguments[:end]), list(arguments[end:])
