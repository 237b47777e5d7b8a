"""`mcp-gateway check`: show authors of servers what the models of simulated hosts would see, and what to change."""

import json
import shutil
import tomllib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from gateway.cli.command_context import (
    ALL,
    AsJson,
    CommandContext,
    ConfigFile,
    run_until_signal,
    settings_for,
    settings_if_any,
)
from gateway.cli.completion import simulated_hosts
from gateway.cli.exit_codes import DONE, FAILED, refuse
from gateway.cli.known_upstream import only_upstream
from gateway.cli.print_checkup import print_checkup
from gateway.cli.record_options import replay_options
from gateway.cli.server_completion import upstream_names
from gateway.cli.terminal import remark, say, say_json
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.core.fact_words import plain
from gateway.core.profiles.match_profile import known_name
from gateway.errors import ConfigError

if TYPE_CHECKING:
    from gateway.cli.diagnosis.checkup import CheckOptions, Checkup
    from gateway.hosts.simulators.host import SimulatedHost


def check(
    context: typer.Context,
    server: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|URL] [-- COMMAND ARGS...]",
            help="The server: its name in the configuration, its URL, or the command to start.",
            autocompletion=upstream_names,
        ),
    ] = None,
    config: ConfigFile = None,
    upstream: Annotated[str | None, typer.Option("--upstream", metavar="NAME", help="The same as NAME alone.")] = None,
    arguments: Annotated[
        Path | None,
        typer.Option("--arguments", metavar="FILE", help="JSON or TOML file: tool -> arguments, or a list of them."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also call tools not declared read-only. They may change things!")
    ] = False,
    tool: Annotated[
        list[str] | None, typer.Option("--tool", metavar="GLOB", help="Only these tools. Repeatable.")
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            "--hosts",
            metavar="NAME",
            autocompletion=simulated_hosts,
            help="Only these simulated hosts, or all. Repeatable.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Limit for each call.")
    ] = 60.0,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay", metavar="DIR", help="Check the calls in this recording (serve --record); nothing is started."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report with the pictures to this file.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if there is any advice.")] = False,
    as_json: AsJson = False,
) -> int:
    """Call a server's tools, and show what the models of simulated hosts would see and what to change in the server.

    Simulated are hosts that were measured: the most different ones, or those that --host names.

    It calls the tools that declare readOnlyHint, and those listed in --arguments. The arguments of the others are made
    up from their schemas; results of calls that refuse these are not judged. Exit codes: 0 through the gateway
    everything is shown or kept at every host, no call failed and no page is unreadable, 1 otherwise, 3 the server
    cannot be connected to.

    With --replay it calls nothing: it takes the recorded calls of NAME, or of every server in the recording.

    Pages of tools (MCP Apps) are read as by the hosts that are known to show them; they are not run.
    """
    # Imported here, so that other commands do not load modules that only a check needs.
    from gateway.cli.diagnosis.checkup import CheckOptions
    from gateway.cli.diagnosis.command_line import shell_line
    from gateway.cli.diagnosis.selection import read_arguments
    from gateway.cli.diagnosis.server_check import check_server

    after_dashes = bool(cast("CommandContext", context.obj).after_dashes)
    if replay is not None:
        named = _recorded_server(server or (), upstream, arguments, everything=everything)
        wanted = CheckOptions(only=tuple(tool or ()), hosts=_hosts(host or ()), seconds=seconds)
        return _check_recording(replay, config, named, wanted, _Output(html, strict, as_json))
    settings = _settings(server or (), config, upstream, after_dashes=after_dashes)
    given = read_arguments(_document(arguments) if arguments is not None else {}, str(arguments))
    to_call_all = None
    if after_dashes:
        files = () if arguments is None else (arguments,)
        options = _repeated("--arguments", files), _repeated("--tool", tool or ()), _repeated("--host", host or ())
        to_call_all = shell_line(["mcp-gateway", "check", *chain(*options), *_all_before(server or ())])
    wanted = CheckOptions(
        given, everything, tuple(tool or ()), _hosts(host or ()), seconds, command_for_all=to_call_all
    )
    ended = run_until_signal(lambda: check_server(settings, wanted, remark))
    return ended if isinstance(ended, int) else _tell([ended], _Output(html, strict, as_json))


def _repeated(option: str, values: Sequence[object]) -> list[str]:
    return [word for value in values for word in (option, str(value))]


def _all_before(server: Sequence[str]) -> list[str]:
    """Return `--all`, and the command of a server behind it: an `--all` among its words was most likely meant so."""
    return ["--all", "--", *(word for word in server if word != "--all")]


class _Output(NamedTuple):
    """How the results of a check are shown, and whether advice makes it fail."""

    html: Path | None
    strict: bool
    as_json: bool


def _tell(checked: "Sequence[Checkup]", output: _Output) -> int:
    """Show the results, and return the exit code."""
    html = output.html
    if html is not None:
        if len(checked) > 1:
            refuse("--html shows one server: NAME one of the recording")
        _write_page(html, checked[0])
    if output.as_json:
        report = {"report": str(html)} if html is not None else {}
        shown = [{**one.to_json(), **report} for one in checked]
        say_json(shown if len(shown) > 1 else shown[0])
    else:
        for one in checked:
            if len(checked) > 1:
                say(f"== {plain(one.server, 80)}")
            print_checkup(one)
    return DONE if all(one.is_good and not (output.strict and one.advised) for one in checked) else FAILED


def _check_recording(
    folder: Path, config: Path | None, server: str | None, wanted: "CheckOptions", output: _Output
) -> int:
    from gateway.cli.diagnosis.recording_check import check_recording

    settings, options = settings_if_any(config).settings, replay_options(folder)
    ended = run_until_signal(lambda: check_recording(settings, options, server, wanted, remark))
    return ended if isinstance(ended, int) else _tell(ended, output)


def _recorded_server(
    server: Sequence[str], upstream: str | None, arguments: Path | None, *, everything: bool
) -> str | None:
    """Return the name of the server in a recording that is to be checked; None for all."""
    if arguments is not None or everything:
        refuse("--replay repeats the recorded calls: leave out --arguments and --all")
    if len(server) + (upstream is not None) > 1:
        refuse("--replay takes one NAME of a recorded server, or none for all")
    return server[0] if server else upstream


def _settings(server: Sequence[str], config: Path | None, upstream: str | None, *, after_dashes: bool) -> Settings:
    """Return settings with only the server to check."""
    if upstream is not None:
        if server:
            refuse("give either --upstream NAME or a server, not both")
        return only_upstream(settings_for(config, None), upstream, where="--upstream")
    is_url = len(server) == 1 and server[0].startswith(("http://", "https://"))
    if len(server) == 1 and not is_url and not after_dashes:
        settings = settings_for(config, None) if config is not None else load_settings().settings
        if server[0] in settings.upstreams or config is not None or not _is_program(server[0]):
            return only_upstream(settings, server[0], or_program=config is None)
    if config is not None:
        refuse("--config needs the NAME of a server in it: one server is checked at a time")
    if not server:
        refuse("name a server: an address, a program after --, or the NAME of one in the configuration")
    return settings_for(None, list(server) if is_url else None, None if is_url else list(server))


def _is_program(word: str) -> bool:
    return shutil.which(word) is not None


def _document(path: Path) -> Any:
    try:
        text = path.read_text("utf-8")
        # Dates are the only TOML values without a JSON form; a tool gets them as text.
        return json.loads(json.dumps(tomllib.loads(text), default=str) if path.suffix == ".toml" else text)
    except OSError as error:
        raise ConfigError(f"cannot be read: {(error.strerror or 'unknown cause').lower()}", where=str(path)) from None
    except ValueError as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ConfigError(f"is not {kind}: {error}", where=str(path)) from None


def _hosts(names: Sequence[str]) -> "tuple[SimulatedHost, ...]":
    from gateway.hosts.simulators.hosts import SIMULATORS
    from gateway.testing.unknown_host import not_simulated

    if ALL in names:
        return tuple(one for one in SIMULATORS.values() if not one.for_people)
    known = {name: known_name(SIMULATORS, name) for name in names}
    for name in (name for name, found in known.items() if found is None):
        refuse(f"--host: {not_simulated(name)}")
    return tuple(SIMULATORS[name] for name in dict.fromkeys(known.values()) if name is not None)


def _write_page(path: Path, checkup: "Checkup") -> None:
    from gateway.cli.demo.page import write_page

    advice = {name: [str(one) for one in some] for name, some in checkup.advice.items()}
    try:
        write_page(path, checkup.outcome, advice=advice)
    except OSError as error:
        raise ConfigError(
            f"cannot be written: {(error.strerror or 'unknown cause').lower()}", where=str(path)
        ) from None
    remark(f"report: {path}")
