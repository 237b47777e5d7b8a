"""`mcp-gateway config`: check the configuration, and show which keys it may have."""

import os
import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.configuration_keys import known_tables, say_keys, say_tables, table_as_json, tables_named
from gateway.cli.diagnosis.approvals import check_approvals
from gateway.cli.diagnosis.globs import check_globs, check_order, expired_tokens
from gateway.cli.diagnosis.start_faults import check_start
from gateway.cli.exit_codes import DONE, UNUSABLE, complain
from gateway.cli.terminal import help_without_command, say, say_json
from gateway.config.builtin_profiles import load_profiles
from gateway.config.find_config import config_candidates
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import ConfigError, ProfileError

app = typer.Typer(help="Check the configuration file, and list its keys.", invoke_without_command=True)


@app.callback()
def common(context: typer.Context) -> None:
    """The configuration file."""
    help_without_command(context)


@app.command("check", short_help="List everything that is wrong with the configuration.")
def check(config: ConfigFile = None, as_json: AsJson = False) -> int:
    """List everything that is wrong with the configuration, one line each; nothing is started."""
    try:
        loaded = load_settings(config)
        if loaded.path is None:
            looked = " and ".join(str(place) for place in config_candidates())
            remedy = "`mcp-gateway add`, `import` or `init` writes one; or name a file with --config"
            raise ConfigError(f"there is no configuration: looked for {looked}", remedy=remedy)
        with _in_file(loaded.path):
            load_profiles(loaded.settings)
            check_start(loaded.settings, over_http=True)
    except (ConfigError, ProfileError) as error:
        if as_json:
            say_json({"ok": False, "problems": str(error).splitlines()})
        else:
            complain(str(error))
        return UNUSABLE
    doubts = list(_doubts(loaded.settings))
    if as_json:
        upstreams = {name: _way_in(one) for name, one in loaded.settings.upstreams.items()}
        say_json({"ok": True, "problems": [], "file": str(loaded.path), "warnings": doubts, "upstreams": upstreams})
        return DONE
    say(f"{loaded.path}: {'can be used, but see below' if doubts else 'valid'}")
    for name, upstream in loaded.settings.upstreams.items():
        say(f"  {name}: {_described(upstream)}")
    for doubt in doubts:
        say(f"warning: {doubt}")
    return DONE


@app.command("keys", short_help="List the keys that the configuration may have.")
def keys(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE]...", help="Tables, such as http, or keys, such as port.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the tables of mcp-gateway.toml, or with names the keys of these tables and what each means."""
    known = known_tables()
    chosen = list(known.values()) if names is None else list(tables_named(names, known))
    if as_json:
        say_json(list(map(table_as_json, chosen)))
    elif names is None:
        say_tables(chosen)
    else:
        for table in chosen:
            say_keys(table)
    return DONE


@contextmanager
def _in_file(path: Path) -> Generator[None]:
    """Add the file to the place of an error that has none."""
    try:
        yield
    except ConfigError as error:
        if error.where is None or str(path) in error.where or len(error.problems) > 1:
            raise
        raise ConfigError(error.message, where=str(path), remedy=error.remedy) from error


def _doubts(settings: Settings) -> Iterator[str]:
    """List problems with which the gateway would start, but which are probably mistakes."""
    if not any(upstream.enabled for upstream in settings.upstreams.values()):
        yield "no upstream is enabled: there will be no tools"
    for name, upstream in settings.upstreams.items():
        if not upstream.enabled:
            continue
        search = upstream.env.get("PATH") or os.environ.get("PATH")
        if upstream.command is not None and shutil.which(upstream.command, path=search) is None:
            yield f"upstreams.{name}.command: {no_program(upstream.command, search)}"
        if upstream.cwd is not None and not upstream.cwd.is_dir():
            yield f"upstreams.{name}.cwd: there is no folder {str(upstream.cwd)!r}"
    from gateway.cli.named_callers import remembered_names

    patterns = (*check_globs(settings, remembered_names(settings)), *check_order(settings))
    for finding in (*expired_tokens(settings, time.time()), *patterns, *check_approvals(settings, {})):
        yield f"{finding.text} ({finding.remedy})"


def no_program(command: str, search: str | None) -> str:
    """Say that there is no such program, and what may be meant. `search`: the folders, as in $PATH."""
    said = f"there is no program {command!r} that could be started"
    first, *rest = command.split()
    if rest and shutil.which(first, path=search) is not None:
        return f'{said}; put the arguments into args: command = "{first}"'
    return said


def _way_in(upstream: UpstreamSettings) -> dict[str, Any]:
    return {"transport": upstream.transport_name, "enabled": upstream.enabled}


def _described(upstream: UpstreamSettings) -> str:
    """Name the transport and the program, but never arguments, addresses or headers, which may contain secrets."""
    words = f"stdio, {upstream.command}" if upstream.command is not None else f"url, transport {upstream.transport}"
    words = "an HTTP API (openapi)" if upstream.openapi is not None else words
    words = "a recording (replay)" if upstream.replay is not None else words
    return words if upstream.enabled else f"{words} (not enabled)"
