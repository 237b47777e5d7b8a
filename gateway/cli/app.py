"""The commands put together, and what they share: options of all, errors, logging."""

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gateway import __version__
from gateway.cli import call, config, demo, explain, profiles, serve, tools
from gateway.cli.failing import ending
from gateway.cli.started import Started
from gateway.cli.terminal import forgive_encodings, neutral, say

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
app.command("tools")(tools.tools)
app.command("call")(call.call)
app.command("explain")(explain.explain)
app.add_typer(profiles.app, name="profiles")
app.add_typer(config.app, name="config")
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
    _log(logging.DEBUG if debug else logging.INFO if given[:1] == ["serve"] else logging.ERROR)
    return ending(lambda: app(given, prog_name="mcp-gateway", standalone_mode=False, obj=Started(opening)), debug=debug)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The command's own arguments, and from `--` on those of an upstream's program."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return list(arguments[:end]), list(arguments[end:])


class _Harmless(logging.Formatter):
    """Log lines with everything that a terminal would obey written out: names and errors come from outside."""

    def format(self, record: logging.LogRecord) -> str:
        return neutral(super().format(record))


def _log(level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Harmless("%(levelname)s %(name)s: %(message)s"))
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(logging.WARNING)
    logging.getLogger("gateway").setLevel(level)
    # They log what they could not parse, which is content, and failures that the gateway names itself. httpx2 logs
    # whole addresses at INFO, which may hold secrets: never below WARNING.
    for talkative in ("mcp", "client"):
        logging.getLogger(talkative).setLevel(logging.WARNING if level == logging.DEBUG else logging.CRITICAL)
