"""The command line application: its commands, common options, error handling and logging."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from gateway._version import __version__
from gateway.cli.command_context import CommandContext
from gateway.cli.exit_codes import ending
from gateway.cli.terminal import forgive_encodings, help_without_command, say
from gateway.config.gateway_settings import LoggingSettings
from gateway.config.schema import Settings
from gateway.telemetry import configure_logging

if TYPE_CHECKING:
    from gateway.serving.mcp.early_stdio import EarlyStdio

EPILOG = (
    "To begin: `import` or `add` servers, list their `tools`, `install` the gateway in a host; `doctor` says what is "
    "wrong.\n\n"
    "Exit codes: 0 success, 1 failure, 2 unusable command line or configuration, 3 an upstream is not available, "
    "130 interrupted, 141 nobody reads the output."
)


NAMES = ("mcp-gateway", "mcp-multimodal-gateway")
"""The names of the command: its own, and that of the package."""


class _Command(NamedTuple):
    """Where a command is in `gateway.cli.commands` (a function, or a Typer with commands below), and its help."""

    place: str
    short_help: str


COMMANDS: Final[Mapping[str, _Command]] = {
    "serve": _Command("serve.serve", "Serve one host over stdio, or many over HTTP."),
    "proxy": _Command("proxy.proxy", "Repair tool results on their way to a model API."),
    "init": _Command("init.init", "Write a first mcp-gateway.toml."),
    "import": _Command("import_servers.import_", "Import the MCP servers of your hosts."),
    "add": _Command("add.add", "Add an MCP server to the configuration."),
    "search": _Command("search.search", "Find MCP servers in the registry."),
    "update": _Command("update.update", "Update MCP servers from the registry."),
    "login": _Command("logins.login", "Log in to an MCP server that wants it (OAuth)."),
    "logout": _Command("logins.logout", "Log out of an MCP server."),
    "remove": _Command("upstreams.remove", "Remove an MCP server from the configuration."),
    "enable": _Command("upstreams.enable", "Enable an MCP server."),
    "disable": _Command("upstreams.disable", "Disable an MCP server; its settings stay."),
    "install": _Command("install.install", "Register the gateway in a host."),
    "uninstall": _Command("install.uninstall", "Remove the gateway from a host."),
    "tools": _Command("tools.tools", "List the tools that a host is offered."),
    "call": _Command("call.call", "Call a tool, and show what a host is sent."),
    "run": _Command("run.run", "Run a script that calls tools, and show what a host is sent."),
    "resources": _Command("resources.resources", "List the resources and prompts of a host."),
    "read": _Command("read.read", "Read a resource, such as the page of a tool."),
    "explain": _Command("explain.explain", "Show step by step how a result is shaped for a host."),
    "profiles": _Command("profiles.app", "List the host profiles, or show one."),
    "config": _Command("config.app", "Check the configuration."),
    "put": _Command("content.put", "Store a file, and print its handle and its link."),
    "content": _Command("content.app", "List, save or remove stored content."),
    "token": _Command("token.app", "Add, list or remove tokens for HTTP."),
    "policy": _Command("policy.app", "Say which rule decides about a call."),
    "approvals": _Command("approvals.app", "Approve calls that wait for it."),
    "pins": _Command("pins.app", "See and approve changed tools."),
    "person": _Command("person.app", "Add, list or remove people who may approve hosts."),
    "access": _Command("access.app", "List or revoke approved hosts."),
    "secret": _Command("secret.app", "Keep secrets in the keyring."),
    "console": _Command("console.console", "See in the browser what every model sees."),
    "status": _Command("status.status", "Show the running gateways."),
    "audit": _Command("audit.app", "Verify and show the audit trail."),
    "logs": _Command("logs.logs", "Show the log of a gateway."),
    "reload": _Command("reload.reload", "Make a running gateway reload its configuration."),
    "migrate": _Command("migrate.migrate", "Show and update the formats of kept files."),
    "stop": _Command("stop.stop", "Stop a running gateway."),
    "calibrate": _Command("calibrate.calibrate", "Measure what a host shows its model."),
    "doctor": _Command("doctor.doctor", "Find out what is wrong, and how to fix it."),
    "check": _Command("check.check", "Test a server of your own with simulated hosts."),
    "demo": _Command("demo.demo", "See what each host's model gets, with bundled servers."),
}
"""By name, in the order of --help. Only the one that runs is imported: `serve` lives long, and needs no other."""


def application(name: str | None = None) -> typer.Typer:
    """Return the application with all its commands, or only with the one of this name."""
    app = typer.Typer(
        name="mcp-gateway",
        help="One MCP server in front of many, with every result in a shape that the host really shows its model.",
        epilog=EPILOG,
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_common)
    for each in COMMANDS if name is None else [name]:
        place, short_help = COMMANDS[each]
        module, _, attribute = place.partition(".")
        command: Any = getattr(import_module(f"gateway.cli.commands.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=each, short_help=short_help)
        else:
            app.command(each, short_help=short_help)(command)
    return app


def _version(asked: bool) -> None:
    if asked:
        say(f"mcp-gateway {__version__}")
        raise typer.Exit


def _common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Log everything, and show the traceback of an error.")] = False,
) -> None:
    """Declare the common options for --help. `_version` has already acted, and `run` finds `--debug` anywhere."""
    help_without_command(context)


def run(
    arguments: Sequence[str], opening: "EarlyStdio | None" = None, *, loaded: Callable[[], object] = lambda: None
) -> int:
    """Run the command line and return the exit code. `opening` is the stdio connection if it is already open.

    `loaded` is called once the command's modules are imported, before the command runs.
    """
    before, rest = _split(arguments)
    debug = "--debug" in before
    given = [*(word for word in before if word != "--debug"), *rest]
    forgive_encodings()
    # `serve` configures logging again as soon as it knows the configuration.
    log = configure_logging(Settings(logging=LoggingSettings(level="error")), debug=debug)
    invocation = CommandContext(opening, debug, after_dashes=len(rest[1:]))
    # Words that are not a command are judged, and explained, by the whole application; --version by any part of it.
    word = "stop" if given == ["--version"] else next((word for word in given if not word.startswith("-")), None)
    app = application(word if word in COMMANDS else None)
    loaded()
    try:
        return ending(lambda: app(given, prog_name=_called_as(), standalone_mode=False, obj=invocation), debug=debug)
    finally:
        log.flush()


def _called_as() -> str:
    """Return the name that the command is called by: a shell completes, and is given a script for, that one."""
    name = Path(sys.argv[0]).stem if sys.argv else ""
    return name if name in NAMES else NAMES[0]


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split off the arguments from `--` on, which belong to an upstream's program."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return list(arguments[:end]), list(arguments[end:])
