"""`mcp-gateway serve`: run the gateway over stdio or HTTP."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gateway.cli.command_context import (
    CommandContext,
    ConfigFile,
    ProfileNames,
    UpstreamUrls,
    profile_option,
    run_until_signal,
    the_profile,
)
from gateway.cli.commands.serve_http import fast_over_http, serve_http_with
from gateway.cli.commands.serve_stdio import opened_stdio, serve_on_stdio
from gateway.cli.commands.serve_workers import WorkerOptions, run_workers, settings_of_worker, worker_words
from gateway.cli.controlled_gateway import Start
from gateway.cli.exit_codes import DONE, TERMINATED, refuse, sole
from gateway.cli.load_for_host import load_for_host
from gateway.cli.record_options import RecordFolder, RecordLimit, ReplayFolder, ReplayMatch, recording_options
from gateway.cli.stop_request import StopRequest
from gateway.cli.terminal import remark
from gateway.cli.toolset_option import ToolsetName, served_of, toolsets_of
from gateway.config.builtin_profiles import load_profiles
from gateway.config.gateway_settings import LogFormat, LogLevel
from gateway.config.schema import Settings
from gateway.core.near_names import near_names
from gateway.core.profiles.match_profile import find_profile
from gateway.core.profiles.profile import Profile
from gateway.errors import ConfigError
from gateway.serving.shared.relay_options import RelayOptions
from gateway.system.gateway_chain import join_chain
from gateway.telemetry import configure_logging
from gateway.telemetry.trace_export import exporting_traces

if TYPE_CHECKING:
    from gateway.serving.mcp.early_stdio import EarlyStdio
    from gateway.serving.workers.worker import Worker

_BY_HAND = """\
Waiting for a host on stdin: hosts start it themselves. Ctrl-D ends it.
You may want one of these instead:
  mcp-gateway install HOST    register the gateway in a host, which starts it
  mcp-gateway serve --http    serve hosts over HTTP
  mcp-gateway tools           list the tools that a host is offered"""
"""Printed for people who start `serve` in a terminal, where it would seem to hang."""


def serve(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND ARGS...]", help="Command of the only upstream, instead of a configuration."
        ),
    ] = None,
    config: ConfigFile = None,
    profile: Annotated[ProfileNames, profile_option("Profile for hosts that do not choose one.")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="Model behind the hosts, for profiles that depend on it."),
    ] = None,
    toolset: ToolsetName = None,
    upstream: UpstreamUrls = None,
    http: Annotated[bool, typer.Option("--http", help="Serve /mcp and /sse over HTTP instead of stdio.")] = False,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65_535, help="Port for --http; 0 for any free one.")
    ] = None,
    bind: Annotated[str | None, typer.Option("--bind", metavar="ADDRESS", help="Address for --http.")] = None,
    console: Annotated[
        bool, typer.Option("--console", help="Serve the console too, at /console; only with --http.")
    ] = False,
    log_format: Annotated[LogFormat | None, typer.Option("--log-format", help="Format of the log on stderr.")] = None,
    log_level: Annotated[LogLevel | None, typer.Option("--log-level", help="Minimum log level.")] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Offer the tools that `calibrate` uses to measure a host.")
    ] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="Share one gateway with all hosts that have this configuration.")
    ] = False,
    record: RecordFolder = None,
    record_limit: RecordLimit = None,
    replay: ReplayFolder = None,
    replay_match: ReplayMatch = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, max=64, help="Processes that share the port; with --http.")
    ] = 1,
    resident: Annotated[bool, typer.Option("--resident", hidden=True)] = False,
    worker: Annotated[bool, typer.Option("--worker", hidden=True)] = False,
) -> int:
    """Serve one host over stdio, or many over HTTP."""
    started: CommandContext = context.obj
    if command and not started.after_dashes:
        _check_program(command)
    alone = shared or console or calibrate or record is not None or replay is not None
    _check_options(http, port, bind, console, toolset, workers, alone=alone)
    own = _become_worker() if worker and http else None
    chosen = the_profile(profile)
    recording = recording_options(record, record_limit, replay, replay_match, shared=shared and not http)
    if shared or resident:
        judged = _SharedOptions(http, resident, bool(command or upstream), calibrate, bool(log_format or log_level))
        if (code := _served_shared(judged, started, RelayOptions(config, chosen, model, toolset))) is not None:
            return code

    def overlay(settings: Settings) -> Settings:
        changed = _with_console(
            _listening(_logging(_modelled(settings, model), log_format, log_level), port, bind), console
        )
        replayed = recording.replayed(changed)
        own_part = replayed if own is None else settings_of_worker(replayed, own)
        return served_of(own_part, toolsets, of_project)

    def load() -> tuple[Start, Mapping[str, Profile]]:
        nonlocal toolsets, of_project
        loaded = recording.loaded(config, upstream, command)
        toolsets = _told(started.opening, () if http else toolsets_of(toolset, loaded.settings))
        of_project = _of_project(toolsets, toolset)
        start = replace(Start.of(loaded, chosen, overlay), calibrating=calibrate, record=recording.record)
        configure_logging(start.settings, debug=started.debug)
        recording.say(loaded.settings)
        return start, load_profiles(start.settings)

    toolsets, of_project = (), None
    usable = partial(_usable, load, started.opening, RelayOptions(config, chosen, model, toolset))
    start = usable()
    settings = start.settings
    with exporting_traces(os.environ, settings.gateway.name):
        if http:
            stop = StopRequest()
            if workers > 1:
                options = {"--config": start.path, "--profile": chosen, "--model": model, "--bind": bind}
                options |= {"--log-format": log_format, "--log-level": log_level}
                words = worker_words(options, upstream or (), command or ())
                return run_workers(start, WorkerOptions(workers, started.debug, words), stop)
            join_chain(start.path, os.environ)
            work = partial(serve_http_with, start, shared=shared, stop=stop, worker=own)
            fast = fast_over_http(settings)
            ended = run_until_signal(work, fast_loop=fast, interrupt=stop.interrupt, terminate=stop.ask)
            if own is not None:
                own.tidy()
        else:
            opening = started.opening or opened_stdio(settings, toolsets)
            if opening.is_by_hand:
                remark(_BY_HAND)
            ended = _served(start, opening, usable)
    return DONE if ended == TERMINATED else ended or DONE


_OPTIONS = ("http", "shared", "console", "workers", "calibrate", "config", "profile", "upstream", "record", "replay")
"""The options that a misspelt word may have meant."""


def _told(opening: "EarlyStdio | None", toolsets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the toolsets; the host's connection knows them from now on."""
    if opening is not None:
        opening.toolsets = toolsets
    return toolsets


def _usable(
    load: Callable[[], tuple[Start, Mapping[str, Profile]]],
    opening: "EarlyStdio | None",
    chosen: RelayOptions,
    refused: ConfigError | None = None,
) -> Start:
    """Return what to start with, as soon as it can be used (`load_for_host`). The chosen profile has to exist."""
    start, profiles = load_for_host(load, opening, chosen.config, chosen.toolset, refused)
    if chosen.profile is not None:
        find_profile(profiles, chosen.profile)
    return start


def _served(start: Start, opening: "EarlyStdio", usable: Callable[[ConfigError], Start]) -> int:
    """Serve a host on stdio, from the beginning again whenever a start has failed and its reason is gone."""
    join_chain(start.path, os.environ)
    while True:
        try:
            return run_until_signal(partial(serve_on_stdio, start, opening))
        except (ConfigError, ExceptionGroup) as error:
            refused = sole(error)
            if not isinstance(refused, ConfigError):
                raise
        start = usable(refused)


def _check_program(command: Sequence[str]) -> None:
    """Refuse a single word that is not a program, such as a misspelt option: it would serve an upstream that fails."""
    word = command[0]
    if len(command) > 1 or os.path.exists(word) or shutil.which(word) is not None:
        return
    near = near_names(word.lstrip("-"), _OPTIONS)
    meant = f"did you mean {' or '.join(f'--{name}' for name in near)}? " if near else ""
    refuse(f"{word!r} is not a program on PATH: {meant}A server's command line goes after --")


def _check_options(
    http: bool, port: int | None, bind: str | None, console: bool, toolset: str | None, workers: int, *, alone: bool
) -> None:
    """Refuse options that do not go together. `alone`: there are some that are for one process."""
    if not http and (port is not None or bind is not None):
        refuse("--port and --bind need --http")
    if console and not http:
        refuse("--console needs --http; `mcp-gateway console` opens the console of any running gateway")
    if toolset is not None and http:
        refuse("--toolset is for a host on stdio; over HTTP, hosts name theirs in the path: /mcp/auto/TOOLSET")
    if workers > 1 and not http:
        refuse("--workers needs --http: a host on stdio has one process")
    if workers > 1 and alone:
        refuse(
            "--workers goes without --shared, --console, --calibrate, --record and --replay: they are for one process"
        )


def _of_project(toolsets: Sequence[str], chosen: str | None) -> str | None:
    return next((name for name in toolsets if name != chosen), None)


def _become_worker() -> "Worker":
    from gateway.serving.workers.worker import become_worker

    try:
        return become_worker()
    except ValueError as error:
        refuse(str(error))


class _SharedOptions(NamedTuple):
    """The options that decide what `--shared` means."""

    http: bool
    resident: bool
    has_upstreams: bool
    calibrates: bool
    logs_otherwise: bool


def _served_shared(options: _SharedOptions, started: CommandContext, host: RelayOptions) -> int | None:
    """Relay for a host, or be the gateway that hosts share, and return the exit code.

    Return None if this process serves as ever: over HTTP, or because nothing can be shared.
    """
    if options.has_upstreams:
        refuse("--shared needs a configuration, by which hosts find the gateway")
    if options.resident:
        from gateway.cli.commands.serve_shared import serve_resident

        return serve_resident(host.config, debug=started.debug)
    if options.http:
        return None
    if options.calibrates or options.logs_otherwise:
        refuse("--shared goes with --config, --profile, --model and --toolset; for the rest, see the configuration")
    from gateway.serving.shared.relay import relay

    opening = started.opening or opened_stdio(Settings(), ())
    if opening.is_by_hand:
        remark(_BY_HAND)
    return relay(opening, host)


def _listening(settings: Settings, port: int | None, bind: str | None) -> Settings:
    given = {"port": port, "bind": bind}
    return _changed(settings, "http", {key: value for key, value in given.items() if value is not None})


def _with_console(settings: Settings, console: bool) -> Settings:
    return _changed(settings, "console", {"enabled": True} if console else {})


def _modelled(settings: Settings, model: str | None) -> Settings:
    return _changed(settings, "gateway", {"model": model} if model else {})


def _logging(settings: Settings, log_format: LogFormat | None, level: LogLevel | None) -> Settings:
    given = {"format": log_format, "level": level}
    return _changed(settings, "logging", {key: value for key, value in given.items() if value is not None})


def _changed(settings: Settings, section: str, changes: Mapping[str, Any]) -> Settings:
    return settings.model_copy(update={section: getattr(settings, section).model_copy(update=changes)})
