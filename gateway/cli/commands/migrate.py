"""`mcp-gateway migrate`: the versions of what the gateway keeps, and how to bring older files up to date."""

import os
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson, ConfigFile, settings_if_any
from gateway.cli.exit_codes import DONE, FAILED
from gateway.cli.kept_files import KeptFile, kept_files
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.core.model.format_versions import UPDATE_GATEWAY


def migrate(
    write: Annotated[bool, typer.Option("--write", help="Bring older files up to date, each after a copy.")] = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Show the versions of the files that the gateway keeps, and bring older ones up to date.

    These are the configuration, approved hosts, logins, pins, past calls, and the records of changed hosts' files. What
    the gateway can make again is not among them. The old file stays beside the new one, as NAME.format-N.

    Exit code 1: a file is older and --write was not given, or is newer than this gateway, or cannot be read.
    """
    loaded = settings_if_any(config)
    found = kept_files(loaded, os.environ)
    copies = {file.path: file.migrate() for file in found if write and file.is_older and file.migrate is not None}
    if copies:
        found = kept_files(loaded, os.environ)
    if as_json:
        say_json([_as_json(file, copies) for file in found])
    else:
        _show(found)
        for path, copy in copies.items():
            say(f"{path} is up to date; as it was, it is in {copy}")
    return DONE if all(file.version == file.known for file in found) else FAILED


def _show(found: list[KeptFile]) -> None:
    if not found:
        remark("the gateway keeps nothing here yet")
        return
    say_table(("what", "format", "state", "file"), [_row(file) for file in found], unfolded=2)


def _row(file: KeptFile) -> tuple[str, str, str, str]:
    return file.what, "?" if file.version is None else str(file.version), _state(file), str(file.path)


def _state(file: KeptFile) -> str:
    if file.version is None:
        return "cannot be read: doctor says more"
    if file.is_newer:
        return f"newer than this gateway, which knows up to {file.known}: {UPDATE_GATEWAY}"
    if file.is_older:
        return f"older than {file.known}: `mcp-gateway migrate --write`"
    return "up to date"


def _as_json(file: KeptFile, copies: dict[Any, Any]) -> dict[str, Any]:
    copy = copies.get(file.path)
    return {
        "what": file.what,
        "file": str(file.path),
        "format": file.version,
        "known": file.known,
        "copy": None if copy is None else str(copy),
    }
